import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

/// Options of the cache that are about its files: read-only caches, permissions, poor file systems.
@Suite("Cache files by options", .timeLimit(.minutes(5)))
struct CacheTierCommandTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer

    init() throws {
        origin = try OriginServer()
        for index in 0..<6 {
            origin.route(
                "/\(index).png",
                OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 16, height: 12)))
        }
    }

    private func list(_ range: Range<Int>, _ name: String) -> String {
        list(range.map { origin.url("/\($0).png") }, name)
    }

    private func fetch(_ file: String, _ cache: String, _ more: [String] = []) async throws -> ChildProcess {
        try await ran(
            ["run", file, "--cache", folder.path(cache), "--allow-net", "127.0.0.0/8", "-q", "-n", "1", "--json"] + more
        )
    }

    @Test("What read-only caches have is a hit that stays there, and every command finds it with the same option")
    func tiers() async throws {
        _ = try await fetch(list(0..<2, "one.txt"), "one")
        _ = try await fetch(list(2..<4, "two.txt"), "two")
        try await ran(["export", "--format", "sdwebimage", "--out", folder.path("app"), "--cache", folder.path("two")])
        let requests = origin.requestCount()
        let tiers = ["--read-only-cache", folder.path("one"), "--read-only-cache", folder.path("app")]
        let all = list(0..<6, "all.txt")
        let run = try await fetch(
            all, "own", tiers + ["--out", folder.path("out"), "--manifest", folder.path("m.jsonl")])
        #expect(run.stdout.contains(#""downloaded":2,"hit":4"#), "\(run.stdout)")
        #expect(origin.requestCount() == requests + 2)
        #expect(try DiskCache(directory: folder.path("own")).audit.count().images == 2)
        #expect(folder.contents().filter { $0.hasPrefix("out/") && $0.hasSuffix(".png") }.count == 6)
        let manifest = String(decoding: folder.read("m.jsonl") ?? [], as: UTF8.self)
        #expect(manifest.split(separator: "\n").count { $0.contains(folder.path("one")) } == 2)
        #expect(manifest.split(separator: "\n").count { $0.contains("com.hackemist.SDImageCache") } == 2)
        let own = ["--cache", folder.path("own")]
        let first = origin.url("/0.png")
        #expect(try await ran(["cache", "path", first] + own + tiers).stdout.hasPrefix(folder.path("one/v1/")))
        try await ran(["cache", "path", first] + own, exits: 66)
        try await ran(["cache", "path", "--missing", first] + own + tiers)
        try await ran(["cache", "path", "--missing", first] + own, exits: 66)
        #expect(try await ran(["fsck"] + own + tiers).stdout.hasSuffix("everything agrees\n"))
        try await ran(["fsck"] + own, exits: 1)
        #expect(try await ran(["export", "--format", "lock"] + own + tiers).stdout.split(separator: "\n").count == 8)
        let missing = try await ran(
            ["cache", "path", "--missing", first] + own + ["--read-only-cache", folder.path("no")], exits: 73)
        #expect(missing.stderr.contains(folder.path("no")))
    }

    @Test("--cache-mode says who may read and write what is made, and a cache for everybody is warned of")
    func modes() async throws {
        folder.write(GeneratedImage.png(seed: 9, width: 5, height: 5), to: "by-hand.png")
        let put = [
            "cache", "import", folder.path("by-hand.png"), "--url", origin.url("/0.png"), "--cache",
            folder.path("group"),
        ]
        try await ran(put + ["--cache-mode", "0770"])
        var status = stat()
        let disk = try DiskCache(directory: folder.path("group"))
        #expect(
            stat(disk.images.path(of: CacheKey(origin.url("/0.png"))), &status) == 0 && status.st_mode & 0o777 == 0o440)
        for name in ["group", "group/v1", "group/.prefetch/locks"] {
            #expect(stat(folder.path(name), &status) == 0 && status.st_mode & 0o777 == 0o770, "\(name)")
        }
        #expect(stat(folder.path("group/.prefetch/sweep"), &status) != 0 || status.st_mode & 0o007 == 0)
        chmod(folder.path("group"), 0o777)
        let open = try await fetch(list(0..<2, "one.txt"), "group")
        #expect(open.stderr.contains("warning: everybody on this machine can write to"))
        #expect(open.stderr.contains("chmod o-w"))
        for mode in ["0470", "9", "1777", "rwx"] {
            try await ran(put + ["--cache-mode", mode], exits: 64)
        }
    }

    @Test("Kills at the system calls of a publish and of a sweep leave whole files and no litter")
    func kills() async throws {
        let script = "\(#filePath)".replacing(
            "Tests/EndToEndTests/CacheTierCommandTests.swift", with: "scripts/killpoints")
        let binaries = String(builtProduct("prefetch-coord").dropLast("/prefetch-coord".count))
        let child = try await ChildProcess(
            "/usr/bin/env", ["bash", script, "--step", "17", "--work", folder.path],
            environment: ["BIN": binaries])
        #expect(await child.wait() == .exited(0), "\(child.stdout)\(child.stderr)")
        #expect(child.stdout.hasSuffix("nothing torn, no litter\n"))
    }
}

import Foundation
import Origin
import TestSupport
import Testing

/// Shards whose images are on the disk once: the cache lies in their folder.
@Suite("Shards with a cache of their own", .timeLimit(.minutes(5)))
struct OwnCacheShardsTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer

    init() throws {
        origin = try OriginServer()
        for index in 0..<30 {
            let body = GeneratedImage.jpeg(seed: UInt64(index % 11), width: 40 + index % 11, height: 30)
            origin.route("/\(index).jpg", OriginResponse(body: body))
        }
    }

    private var cache: String { folder.path("out/.prefetch") }

    private func lines(_ range: Range<Int>) -> [String] {
        range.map { "{\"url\":\"\(origin.url("/\($0).jpg"))\",\"caption\":\"image \($0)\"}" }
    }

    private func run(_ list: String, _ more: [String] = []) -> [String] {
        [
            "run", list, "--allow-net", "127.0.0.0/8", "-n", "2", "--format", "webdataset", "--per-shard", "10",
            "--sidecar", "jsonl", "--out", folder.path("out"), "--cache", cache,
        ] + more
    }

    /// Regular files with an image, and links, in the cache.
    private var images: (files: Int, links: Int) {
        var (files, links) = (0, 0)
        for name in TemporaryDirectory.contents(cache + "/v1") where !name.hasSuffix("/") {
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(cache)/v1/\(name)")
            if target == nil { files += 1 } else { links += 1 }
        }
        return (files, links)
    }

    @Test("Images of a shard are on the disk once; the next run, a retry, a check and other exports find them there")
    func once() async throws {
        origin.route("/29.jpg", OriginResponse(status: 404))
        // The last two lines are of URLs that the first shard has.
        let list = list(lines(0..<30) + lines(0..<2))
        try await ran(run(list), exits: 3, says: "31 images in 4 shards, 4 of them new")
        #expect(images.files == 0 && images.links == 29, "\(images)")
        #expect(origin.requestCount("/0.jpg") == 1)
        let archives = (0..<4).map { folder.read("out/0000\($0).tar") }
        #expect(archives.allSatisfy { $0 != nil })

        // What is in shards is a hit.
        let requests = origin.requestCount()
        try await ran(run(list), exits: 3, says: "31 images in 4 shards")
        #expect(origin.requestCount() == requests)
        #expect((0..<4).map { folder.read("out/0000\($0).tar") } == archives)

        // Its images come out of the archives that it replaces.
        origin.route("/29.jpg", OriginResponse(body: GeneratedImage.jpeg(seed: 5, width: 24, height: 8)))
        try await ran(run(list, ["--retry-failed"]), exits: 0, says: "32 images in 4 shards, 1 of them new")
        #expect(images.files == 0 && images.links == 30 && origin.requestCount("/20.jpg") == 1, "\(images)")
        #expect(folder.read("out/00001.tar") == archives[1] && folder.read("out/00002.tar") != archives[2])
        let indexes = TemporaryDirectory.contents(folder.path("out")).filter { $0.hasSuffix(".index") }
        #expect(indexes.map { $0.prefix(7) } == [".00000-", ".00001-", ".00002-", ".00003-"])

        try await ran(["fsck", "--cache", cache])
        let verified = try await ran(["cache", "verify", "--cache", cache])
        #expect(verified.stdout.contains("30"), "\(verified.stdout)")
        try await ran(["export", "--format", "files", "--out", folder.path("files"), "--cache", cache])
        for index in 0..<30 {
            let name = String(repeating: "0", count: index < 9 ? 5 : 4) + "\(index + 1).jpg"
            let expected =
                index == 29
                ? GeneratedImage.jpeg(seed: 5, width: 24, height: 8)
                : GeneratedImage.jpeg(seed: UInt64(index % 11), width: 40 + index % 11, height: 30)
            #expect(folder.read("files/\(name)") == expected, "\(name)")
        }
        let manifest = try await ran(["export", "--format", "jsonl", "--cache", cache]).stdout
        #expect(manifest.split(separator: "\n").allSatisfy { $0.contains("\"sha256\":\"") }, "\(manifest)")
    }

    @Test(
        "A folder of shards that was copied has its images, after a check; one without an archive fetches its images again"
    )
    func copied() async throws {
        let list = list(lines(0..<20))
        try await ran(run(list), says: "20 images in 2 shards")
        let requests = origin.requestCount()
        try FileManager.default.copyItem(atPath: folder.path("out"), toPath: folder.path("copy"))
        try FileManager.default.removeItem(atPath: folder.path("out"))
        try FileManager.default.moveItem(atPath: folder.path("copy"), toPath: folder.path("out"))
        try await ran(run(list), says: "20 images in 2 shards")
        #expect(origin.requestCount() == requests)
        try FileManager.default.removeItem(atPath: folder.path("out/00001.tar"))
        try await ran(run(list), says: "20 images in 2 shards, 1 of them new")
        #expect(origin.requestCount() == requests + 10 && images.files == 0)
    }

    @Test("What a read-only cache has is in the shards too, and found there without it; it loses nothing")
    func readOnly() async throws {
        let (part, all) = (list(lines(5..<25), "part.jsonl"), list(lines(0..<30)))
        let older = folder.path("older")
        try await ran(["run", part, "--allow-net", "127.0.0.0/8", "--cache", older])
        let before = folder.contents().filter { $0.hasPrefix("older/v1/") }
        let requests = origin.requestCount()
        try await ran(
            run(all, ["--read-only-cache", older]), says: "30 images in 3 shards, 3 of them new")
        #expect(origin.requestCount() == requests + 10)
        #expect(images.files == 0 && images.links == 30, "\(images)")
        #expect(folder.contents().filter { $0.hasPrefix("older/v1/") } == before)
        // Of another folder of shards, too.
        let copies = ["run", all, "--allow-net", "127.0.0.0/8", "--format", "webdataset", "--per-shard", "15"]
        try await ran(
            copies + ["--sidecar", "jsonl", "--out", folder.path("more"), "--read-only-cache", cache, "--cache"]
                + [folder.path("more/.prefetch")], says: "30 images in 2 shards, 2 of them new")
        try FileManager.default.removeItem(atPath: older)
        try FileManager.default.removeItem(atPath: folder.path("out"))
        let export = ["export", "--format", "files", "--out", folder.path("files"), "--cache"]
        try await ran(export + [folder.path("more/.prefetch")], says: "30 images, 30 of them new")
        #expect(origin.requestCount() == requests + 10)
    }

    @Test("A shard that was changed is no hit, and links that a stranger made lead nowhere")
    func hostile() async throws {
        let list = list(lines(0..<10))
        try await ran(run(list), says: "10 images in 1 shard")
        var bytes = try #require(folder.read("out/00000.tar"))
        bytes[700] ^= 0xFF
        folder.write(bytes, to: "out/00000.tar")
        let verified = try await ended(["cache", "verify", "--cache", cache])
        #expect(await verified.wait() != .exited(0), "\(verified.stdout)\(verified.stderr)")
        folder.write(Array("secret".utf8), to: "secret")
        let link = try #require(TemporaryDirectory.contents(cache + "/v1").first { !$0.hasSuffix("/") })
        for target in [
            "../../../../secret", "shard:../secret/1", "shard:00000/999999", "shard:00009/0", "shard:00000/-1",
        ] {
            unlink("\(cache)/v1/\(link)")
            try #require(symlink(target, "\(cache)/v1/\(link)") == 0)
            let run = try await ended(run(list))
            #expect(await run.wait() == .exited(0), "\(run.stderr)")
            #expect(folder.read("secret") == Array("secret".utf8))
        }
    }

    @Test("Without --cache the cache is in the folder of shards, unless there is a ./cache")
    func usual() async throws {
        let list = list(lines(0..<5))
        let words = run(list).dropLast(2)
        let command = ([builtProduct("prefetch-coord")] + words).map { "'\($0)'" }.joined(separator: " ")
        let first = try await shell(command)
        #expect(await first.wait() == .exited(0) && images.links == 5, "\(first.stderr)")
        #expect(folder.read("cache/CACHEDIR.TAG") == nil)
        let second = try await shell("mkdir cache && \(command)")
        #expect(await second.wait() == .exited(0) && folder.read("cache/CACHEDIR.TAG") != nil, "\(second.stderr)")
    }
}

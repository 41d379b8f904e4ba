import Glibc
import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

/// A cache for each machine: the batch knows which one has an image, and each command goes by it.
@Suite("A cache on each machine", .timeLimit(.minutes(5)))
struct OwnCacheTests: CommandSuite {
    private let images = 60

    /// A batch of images and two URLs that fail, fetched by two workers with caches of their own: the first leaves when it has what the
    /// origin gives, which holds the second half of the list until the other one comes.
    private func fetched() async throws -> (batch: RemoteBatch, origin: OriginServer, urls: [String]) {
        let batch = try await RemoteBatch()
        let origin = try OriginServer()
        var urls: [String] = []
        for index in 0..<images {
            let body = GeneratedImage.png(seed: UInt64(index), width: 16, height: 12)
            origin.route(
                "/\(index).png", OriginResponse(body: body, fault: index < images / 2 ? nil : .stallBeforeHeader))
            urls.append(origin.url("/\(index).png"))
        }
        origin.setFallback { _ in OriginResponse(status: 404) }
        urls += [origin.url("/no1"), origin.url("/no2")]
        try await batch.submit(urls, as: "own")
        let first = try await batch.workers(1, ["--cache", batch.folder.path("a"), "--drain-timeout", "100ms"])[0]
        try await until { try await batch.queue.batches.status(of: "own")?.counts.finished ?? 0 >= images / 2 }
        first.signal(SIGTERM)
        _ = await first.wait()
        for index in images / 2..<images { origin.release("/\(index).png") }
        let second = try await batch.workers(1, ["--cache", batch.folder.path("b")])[0]
        #expect(await second.wait() == .exited(0), "\(second.stderr)")
        #expect(!(first.stderr + second.stderr).contains("none of them has all"))
        return (batch, origin, urls)
    }

    /// Lines of a manifest that have a path, and those that have a host.
    private func counts(_ text: String) -> (paths: Int, hosts: Int) {
        let lines = text.split(separator: "\n")
        return (lines.count { !$0.contains(#""path":null"#) }, lines.count { !$0.contains(#""host":null"#) })
    }

    @Test(
        "fsck, export, why: each says what is in its cache, and where the rest is; merged manifests and folders are whole"
    )
    func everyCommand() async throws {
        let (batch, origin, urls) = try await fetched()
        defer { withExtendedLifetime(origin) {} }
        var own: [String: Int] = [:]
        var manifests: [String: String] = [:]
        for name in ["a", "b"] {
            let other = name == "a" ? "b" : "a"
            let cache = batch.folder.path(name)
            let file = batch.folder.path("\(name).jsonl")
            let export = try await batch.done(["export", "own", "--format", "jsonl", "-o", file, "--cache", cache])
            let text = String(decoding: try #require(batch.folder.read("\(name).jsonl")), as: UTF8.self)
            manifests[name] = text
            let (paths, hosts) = counts(text)
            own[name] = paths
            #expect(paths > 0 && hosts > 0 && paths + hosts == images)
            #expect(export.stderr.contains("\(hosts) images in other caches: \(hosts) in "), "\(export.stderr)")
            #expect(export.stderr.contains(":\(batch.folder.path(other))"))

            let check = try await batch.done(["fsck", "own", "--cache", cache])
            #expect(check.stdout.contains("1 batch, everything agrees"))
            #expect(check.stdout.contains("own: \(hosts) images in other caches: \(hosts) in "), "\(check.stdout)")

            try await batch.done(
                ["export", "own", "--format", "files", "--out", batch.folder.path("images-\(name)"), "--cache", cache])
        }
        #expect((own["a"] ?? 0) + (own["b"] ?? 0) == images)

        // Together: what docs/OPERATIONS.md says.
        let merged = try await batch.done(
            [
                "export", "own", "--format", "jsonl", "--cache", batch.folder.path("a"), "--merge",
                batch.folder.path("b.jsonl"),
            ])
        #expect(merged.stderr == "")
        // What none of them has is told.
        batch.folder.write(
            Array(try #require(manifests["b"]).split(separator: "\n").dropLast(3).joined(separator: "\n").utf8),
            to: "short.jsonl")
        let short = try await batch.done(
            [
                "export", "own", "--format", "jsonl", "--cache", batch.folder.path("a"), "--merge",
                batch.folder.path("short.jsonl"),
            ])
        #expect(short.stderr.contains("note: 1 image in other caches: 1 in "), "\(short.stderr)")
        let lines = merged.stdout.split(separator: "\n").map(String.init)
        #expect(counts(merged.stdout) == (images, own["b"] ?? 0) && lines.count == urls.count)
        for (index, line) in lines.enumerated() where index < images {
            let path = String(line.split(separator: "\"path\":\"")[1].prefix { $0 != "\"" })
            #expect(readFile(path) == GeneratedImage.png(seed: UInt64(index), width: 16, height: 12))
        }
        let copy = try await batch.shell(
            "cp -an '\(batch.folder.path("images-b"))/.' '\(batch.folder.path("images-a"))' && ls '\(batch.folder.path("images-a"))'"
        )
        #expect(await copy.wait() == .exited(0), "\(copy.stderr)")
        #expect(copy.stdout.split(separator: "\n").count == images)

        // One cache of both.
        let joined = try await batch.shell(
            "cp -a '\(batch.folder.path("a"))' '\(batch.folder.path("all"))' && cp -an '\(batch.folder.path("b"))/v1/.' '\(batch.folder.path("all"))/v1/'"
        )
        #expect(await joined.wait() == .exited(0), "\(joined.stderr)")
        let check = try await batch.done(["fsck", "own", "--cache", batch.folder.path("all")])
        #expect(check.stdout == "1 batch, everything agrees\n")

        // An image of the other cache, by its URL.
        let there = try #require(
            (0..<images).first { manifests["a"]?.split(separator: "\n")[$0].contains(#""path":null"#) == true })
        let why = try await batch.done(["why", urls[there], "--cache", batch.folder.path("a")])
        #expect(why.stdout.contains("line \(there + 1) of own: downloaded, in the cache of "), "\(why.stdout)")
        #expect(why.stdout.contains(":\(batch.folder.path("b"))"))
        let object = try await batch.done(["why", urls[there], "--cache", batch.folder.path("a"), "--json"])
        #expect(object.stdout.contains(#""directory":"\#(batch.folder.path("b"))""#), "\(object.stdout)")
        // Without any cache it is said as well.
        #expect(try await batch.done(["why", urls[there]]).stdout.contains(":\(batch.folder.path("b"))"))
    }

    @Test("What its own cache lost is found: twenty are shown, all with --all, and the images of others are no finding")
    func lost() async throws {
        let (batch, origin, _) = try await fetched()
        defer { withExtendedLifetime(origin) {} }
        let cache = batch.folder.path("a")
        let export = try await batch.done(["export", "own", "--format", "jsonl", "--cache", cache])
        let own = counts(export.stdout).paths
        try await ran(["cache", "rm", "--all", "--yes", "--cache", cache])
        let check = try await batch.done(["fsck", "own", "--cache", cache], 1)
        #expect(check.stdout.split(separator: "\n").count { $0.contains(": I5: line ") } == 20)
        #expect(check.stdout.contains("and \(own - 20) more findings: --all shows every one"), "\(check.stdout)")
        #expect(check.stdout.contains("own: \(images - own) images in other caches: "))
        #expect(check.stdout.contains("\(own) findings"))
        let all = try await batch.done(["fsck", "own", "--cache", cache, "--all"], 1)
        #expect(all.stdout.split(separator: "\n").count { $0.contains(": I5: line ") } == own)
        let json = try await batch.done(["fsck", "own", "--cache", cache, "--json"], 1)
        #expect(
            json.stdout.contains(#""finding_count":\#(own),"#) && json.stdout.contains(#""images":\#(images - own),"#))
    }

    @Test("A manifest of another list, a text that is none and a missing file are refused, with what to give")
    func wrongManifests() async throws {
        let (batch, origin, _) = try await fetched()
        defer { withExtendedLifetime(origin) {} }
        let (folder, cache) = (batch.folder, batch.folder.path("a"))
        folder.write(Array(#"{"line":1,"url":"http://other/","path":"/x"}"#.utf8), to: "other.jsonl")
        folder.write(Array("http://h/a\n".utf8), to: "urls.jsonl")
        for (file, code, text) in [
            ("other.jsonl", Int32(65), "is of another list: its line 1 has another URL"),
            ("urls.jsonl", 65, "is not a manifest of a batch: its line 1"),
            ("nowhere.jsonl", 66, "nowhere.jsonl"),
        ] {
            let export = try await batch.done(
                [
                    "export", "own", "--format", "jsonl", "--cache", cache, "--merge", folder.path(file),
                ], code)
            #expect(export.stderr.contains(text), "\(export.stderr)")
        }
        try await batch.done(
            [
                "export", "own", "--format", "files", "--out", folder.path("out"), "--cache", cache, "--merge",
                folder.path("other.jsonl"),
            ], 64)
    }
}

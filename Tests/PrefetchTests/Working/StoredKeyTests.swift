import Origin
import TestSupport
import Testing
import WebImage

@testable import Prefetch

/// Who may store under a key: a list cannot decide what the URL of another list gives.
@Suite("Who may store under a key", .timeLimit(.minutes(2)))
struct StoredKeyTests {
    private func png(_ seed: Int) -> [UInt8] { GeneratedImage.png(seed: UInt64(seed), width: 8, height: 8) }

    private func cached(_ fixture: WorkerFixture, _ url: String) -> [UInt8]? {
        (try? DiskCache(directory: fixture.folder.path("cache")))?.existingPath(forKey: url).flatMap { readFile($0) }
    }

    @Test(
        "Mirrors, headers and keys of a stranger's line leave the URL of the next list a fetch of its own",
        arguments: ["mirror", "headers", "key", "mirror with the digest of what it gives"])
    func victim(_ attack: String) async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        let (good, evil) = (png(1), png(2))
        let digest = SHA256.hash(evil).hex
        fixture.origin.route("/victim.png") { request in
            OriginResponse(body: request.header("X-Evil") == nil ? good : evil)
        }
        fixture.origin.route("/evil.png", OriginResponse(body: evil))
        let (victim, other) = (fixture.origin.url("/victim.png"), fixture.origin.url("/evil.png"))
        var options = BatchOptions()
        let line: String
        switch attack {
        case "mirror": line = #"{"url":"\#(fixture.origin.url("/none.png"))","mirrors":["\#(other)"]}"#
        case "headers": line = #"{"url":"\#(victim)","headers":{"X-Evil":"1"}}"#
        case "key":
            options.cacheKey = try #require(CacheKeyFilter("s|^.+$|\(victim)|"))
            line = other
        default: line = #"{"url":"\#(victim)","sha256":"\#(digest)","mirrors":["\#(other)"]}"#
        }
        func run(_ line: String, _ options: BatchOptions = BatchOptions()) async throws -> [PrefetchOutcome: Int] {
            let id = try await fixture.submit([line], to: queue, options: options)
            _ = try await fixture.worker().run()
            let counts = try #require(try await queue.batches.status(of: id)).counts
            return Dictionary(
                uniqueKeysWithValues: PrefetchOutcome.allCases.map { ($0, counts[$0]) }.filter { $0.1 > 0 })
        }
        #expect(try await run(line, options) == [.downloaded: 1])
        #expect(cached(fixture, victim) == nil && cached(fixture, other) == nil)
        // The same line finds what it has stored.
        #expect(try await run(line, options) == [.hit: 1])
        #expect(try await run(victim) == [.downloaded: 1])
        #expect(cached(fixture, victim) == good)
        #expect(try await run(victim) == [.hit: 1])
        #expect(try await run(line, options) == [.hit: 1])
    }

    @Test("Keys: a URL is its own, and what may stand for more than one is a digest of all that decides")
    func keys() throws {
        let url = "http://h/a.png?v=1"
        func key(_ filter: String, _ line: String? = nil, of url: String = url) throws -> String {
            let settings = line.flatMap { URLSettings(text: $0) }
            return try CacheKeyRule.filter(#require(CacheKeyFilter(filter))).key(for: url, settings)
        }
        #expect(try key("url") == url)
        #expect(
            try key("url", #"{"options":["highPriority"],"sha256":"\#(String(repeating: "0", count: 64))"}"#) == url)
        // A result that is no URL is the key, as in SDWebImage.
        #expect(try key("s|^.*/||") == "a.png?v=1")
        var all = [
            try key("without-query"), try key("s/[?].*//"), try key("s/^.*$/HTTPS:x/"), try key("s/^.*$/prefetch:0/"),
            try key("url", #"{"headers":{"Cookie":"a"}}"#), try key("url", #"{"headers":{"Cookie":"b"}}"#),
            try key("url", #"{"mirrors":["http://m/a"]}"#), try key("without-query", #"{"mirrors":["http://m/a"]}"#),
            try key("url", #"{"mirrors":["http://m/a"]}"#, of: "http://h/b"),
        ]
        #expect(Set(all.map { ByteText($0) }).count == all.count)
        #expect(all.allSatisfy { $0.startsWithBytes(of: "prefetch:") && $0.utf8.count == 73 })
        // Signed URLs of one image still have one.
        #expect(try key("without-query") == key("without-query", of: "http://h/a.png?v=2"))
        // The order of members, and what does not decide about the bytes, makes no other key.
        all = try [#"{"headers":{"A":"1","B":"2"}}"#, #"{"options":["retryFailed"],"headers":{"B":"2","A":"1"}}"#]
            .map { try key("url", $0) }
        #expect(all[0] == all[1])
        let rule = CacheKeyRule.transformed(.filter(.withoutQuery), by: "flip")
        #expect(try rule.key(for: url).endsWithBytes(of: "-flip"))
        #expect(try rule.sdWebImageKey(for: url) == "http://h/a-flip.png")
    }
}

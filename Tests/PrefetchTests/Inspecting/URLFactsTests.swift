import Glibc
import Redis
import TestSupport
import Testing

@testable import Prefetch
@testable import WebImage

@Suite("What is known of a URL", .timeLimit(.minutes(5)))
struct URLFactsTests {
    private let folder = TemporaryDirectory()

    /// A batch whose lines have these URLs, each skipped with a detail of its line.
    private func batch(_ id: String, _ urls: [String], _ f: QueueFixture) async throws {
        try await f.open(id)
        let job = PrefetchJob(
            batch: id, base: 0, entries: urls.enumerated().map { .init(line: $0.offset + 1, url: $0.element) })
        _ = try await f.queue.batches.push(
            batch: id, offset: 0, window: "all", count: urls.count, jobs: [job.encoded()])
        _ = try await f.queue.batches.seal(batch: id, total: urls.count)
        _ = try await f.queue.workers.join(worker: "w-\(id)", lease: 60_000, about: [])
        let claimed = try await f.claim("w-\(id)", 1)[0].job
        let report = QueueFixture.report(claimed, Array(repeating: .timeout, count: urls.count)) { item in
            item.failure?.detail = "line\t\(item.position + 1)"
        }
        _ = try await f.queue.reports.send([report], worker: "w-\(id)")
        // The order of batches is by milliseconds.
        let time = try await f.redis("ZSCORE", f.keys.batches, id).int ?? 0
        while (try await f.redis("TIME").array?.map { $0.int ?? 0 }).map({ $0[0] * 1000 + $0[1] / 1000 }) == time {}
    }

    @Test("The newest batches are looked through, newest first, and only for this very URL")
    func batches() async throws {
        let f = try await QueueFixture()
        let url = "http://h/1"
        try await batch("oldest", [url], f)
        try await batch("b", ["http://h/10", url, "http://h/", url], f)
        try await batch("none", ["http://h/10"], f)
        try await batch("c", ["xhttp://h/1", url], f)
        func read(_ batches: Int, _ url: String = url) async throws -> URLFacts {
            try await URLFacts.read(url, queue: f.queue, cache: nil, batches: batches)
        }
        let facts = try await read(3)
        #expect(facts.endings.map(\.batch.id) == ["c", "b"])
        #expect(facts.endings.map { $0.details.map(\.line) } == [[2], [2, 4]])
        #expect(facts.endings[1].details.map(\.detail) == ["line\t2", "line\t4"])
        #expect(facts.batchesRead == 3 && facts.batchCount == 4 && facts.isKnown && facts.listing == nil)
        #expect(try await read(99).endings.map(\.batch.id) == ["c", "b", "oldest"])
        let nothing = try await read(0)
        #expect(nothing.endings.isEmpty && nothing.batchesRead == 0 && !nothing.isKnown)
        #expect(try await read(9, "http://h/2").isKnown == false)
        _ = try await f.queue.failedURLs.add(["http://h/2"])
        #expect(try await read(9, "http://h/2").listing != nil)
    }

    @Test("A batch with thousands of details is read to its end")
    func many() async throws {
        let f = try await QueueFixture()
        try await f.open("b")
        for start in stride(from: 0, to: 5000, by: 1000) {
            let fields = (start..<(start + 1000)).flatMap {
                ["\($0)", "\($0 + 1)\tdns\t0\t1\thttp://h/\($0 % 2500)\tno"]
            }
            _ = try await f.queue.connection.command(
                (["HSET", f.keys.skipped("b")] + fields).map { RedisArgument($0) })
        }
        #expect(try await f.queue.results.keptDetails(of: "b", url: "http://h/77").map(\.line) == [78, 2578])
        #expect(try await f.queue.results.keptDetails(of: "b", url: "http://h/2500").isEmpty)
        #expect(try await f.queue.results.keptDetails(of: "none", url: "http://h/1").isEmpty)
    }

    @Test("The cache is asked by the key, and what is no file there is no image")
    func cache() async throws {
        let f = try await QueueFixture()
        let cache = try DiskCache(directory: folder.path("c"))
        let record = CacheRecord(level: .decode, format: .png, width: 2, height: 3, length: 3, digest: nil, storedAt: 9)
        try cache.images.store(ImageBody([1, 2, 3]), for: CacheKey("k"), record: record)
        func read(_ key: String) async throws -> URLFacts {
            let filter = try #require(CacheKeyFilter("s|^.*$|\(key)|"))
            return try await URLFacts.read(
                "http://h/1", rule: .filter(filter), queue: f.queue, cache: cache, batches: 1)
        }
        let facts = try await read("k")
        #expect(facts.image?.record == record && facts.isKnown && facts.key == "k")
        #expect(try await read("http://h/1").isKnown == false)
        try cache.images.store(ImageBody([1, 2, 3]), for: CacheKey("loop"), record: record)
        let path = folder.path("c/\(CacheKey("loop").path)")
        #expect(unlink(path) == 0 && symlink("target", path) == 0)
        #expect(try await read("loop").image == nil)
    }

    @Test("Options of a batch keep compat, and a batch without it completes when it is cancelled")
    func compat() {
        var options = BatchOptions()
        #expect(options.compat == nil && options.completesWhenCancelled)
        options.compat = .sd3
        #expect(BatchOptions(encoded: options.encoded) == options && !options.completesWhenCancelled)
        #expect(
            options.differences(from: BatchOptions()) == [
                "--compat sd3, was not given", "--blacklist sd3, was smart",
                "--blacklist-ttl 0s, was \(BlacklistTTL().text)",
            ])
        #expect(
            BatchOptions().differences(from: options) == [
                "--compat not given, was sd3", "--blacklist smart, was sd3",
                "--blacklist-ttl \(BlacklistTTL().text), was 0s",
            ])
        // As a batch of an earlier version has it.
        #expect(BatchOptions(encoded: #"{"blacklist":["sd3"]}"#).completesWhenCancelled)
    }
}

import Redis
import Testing
import WebImage

@testable import Prefetch

@Suite("In which cache the images of a batch are", .timeLimit(.minutes(5)))
struct BatchCacheTests {
    private let first = BatchCache(id: "aa", host: "img-01", directory: "/srv/images")
    private let second = BatchCache(id: "bb", host: "img-02", directory: "/srv/my images")

    @Test("The first cache costs nothing; of others each image has its number, by whoever was first to settle it")
    func numbers() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [4, 4])
        try await f.join("w", "v")
        let jobs = [try await f.claim("w", 1)[0].job, try await f.claim("v", 1)[0].job]
        _ = try await f.queue.reports.send(
            [QueueFixture.report(jobs[0], [.downloaded, nil, .badImage], isFinal: false)], worker: "w", cache: first)
        #expect(try await f.redis("EXISTS", f.keys.places("b")).int == 0)
        _ = try await f.queue.reports.send(
            [
                QueueFixture.report(jobs[0], [.hit, .hit, .hit], isFinal: false),
                QueueFixture.report(jobs[1], [.downloaded, .httpError, .notModified, .hit]),
            ], worker: "v", cache: second)
        // One that comes late says nothing of what others have settled.
        _ = try await f.queue.reports.send(
            [QueueFixture.report(jobs[0], [.hit, .hit, .hit, .hit])], worker: "w", cache: first)
        #expect(try await f.queue.results.places(of: "b", range: 0..<8) == [0, 1, 0, 0, 1, 0, 1, 1])
        let caches = try await f.queue.results.caches(of: "b")
        #expect(caches.all == [first, second] && caches[0] == first && caches[1] == second && caches[2] == nil)
        #expect(try await f.findings("b") == [])
    }

    @Test("Reports of failures, and those that name no cache, register none")
    func withoutImages() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2, 2])
        try await f.join("w")
        let claims = try await f.claim("w", 1, count: 2)
        _ = try await f.queue.reports.send(
            [QueueFixture.report(claims[0].job, [.httpError, .timeout])], worker: "w", cache: first)
        _ = try await f.queue.reports.send([QueueFixture.report(claims[1].job, [.hit, .hit])], worker: "w")
        #expect(try await f.redis("EXISTS", f.keys.caches("b"), f.keys.places("b")).int == 0)
    }

    @Test("A cache that Redis forgot is registered again with its next image")
    func forgotten() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1, 1])
        try await f.join("w")
        let claims = try await f.claim("w", 1, count: 3)
        func report(_ index: Int, _ cache: BatchCache) async throws {
            _ = try await f.queue.reports.send(
                [QueueFixture.report(claims[index].job, [.hit])], worker: "w", cache: cache)
        }
        try await report(0, first)
        try await f.redis("DEL", f.keys.caches("b"))
        try await report(1, second)
        try await report(2, first)
        #expect(try await f.queue.results.caches(of: "b").all == [second, first])
        #expect(try await f.queue.results.places(of: "b", range: 0..<3) == [0, 0, 1])
    }

    @Test("The 256th cache and all behind it share a number, and nobody says which of them it is")
    func tooMany() async throws {
        let f = try await QueueFixture()
        let count = 258
        try await f.fill(sizes: Array(repeating: 1, count: count))
        try await f.join("w")
        let claims = try await f.claim("w", 1, count: count)
        for (index, claim) in claims.enumerated() {
            let cache = BatchCache(id: "\(1_000 + index)", host: "h\(index)", directory: "/c")
            _ = try await f.queue.reports.send([QueueFixture.report(claim.job, [.hit])], worker: "w", cache: cache)
        }
        let places = try await f.queue.results.places(of: "b", range: 0..<count)
        #expect(places.map(Int.init) == (0..<count).map { min(claims.count - 1, min($0, 255)) })
        let caches = try await f.queue.results.caches(of: "b")
        #expect(caches.count == 256 && caches[254]?.host == "h254" && caches[255]?.host == "several")
    }

    @Test("Whatever somebody writes into the key, a reader takes what can be true")
    func hostile() {
        let caches = BatchCaches(fields: [
            "aa": "0 img-01 /srv/images", "bb": "x", "": "1", "cc": "-1 h /c", "dd": "256 h /c",
            "ee": "99999999999999999999 h /c",
            "ff": "7 \u{1B}[2J ",
        ])
        #expect(caches.all == [first, BatchCache(id: "ff", host: "\u{1B}[2J", directory: "")])
    }
}

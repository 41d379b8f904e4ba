import Origin
import TestSupport
import Testing
import WebImage

@testable import Prefetch

/// Patterns of batches at workers: a hostile pattern, or an innocent one that meets hostile URLs, ends these URLs and nothing else.
@Suite("Patterns at the workers", .timeLimit(.minutes(2)))
struct PatternWorkerTests {
    private static let hostile = #"(a+)+$"#

    @Test("URLs on which a pattern is over its limit end as invalidURL; the worker and another batch go on")
    func attack() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        fixture.origin.setFallback { request in
            OriginResponse(body: GeneratedImage.png(seed: UInt64(request.number), width: 8, height: 8))
        }
        let tail = String(repeating: "a", count: 40) + "!"
        let urls = (0..<60).map { fixture.origin.url("/\($0)?\(tail)") } + [fixture.origin.url("/short?aa")]
        var (keys, filters) = (BatchOptions(), BatchOptions())
        keys.cacheKey = try #require(CacheKeyFilter("s/\(Self.hostile)/x/"))
        filters.requests.urlFilters = [Self.hostile]
        let attacks = [
            try await fixture.submit(urls, to: queue, options: keys),
            try await fixture.submit(urls, to: queue, options: filters),
        ]
        let other = try await fixture.submit((0..<30).map { fixture.origin.url("/good/\($0)") }, to: queue)
        let worker = try fixture.worker()
        _ = try await worker.run()
        for id in attacks {
            let status = try #require(try await queue.batches.status(of: id))
            #expect(status.counts[.invalidURL] == 60 && status.counts[.downloaded] == 1 && status.state == .done)
            let detail = try await queue.results.keptDetails(of: id, url: urls[7])
            #expect(detail.first?.detail.contains("takes more steps than it may on this URL") == true, "\(detail)")
        }
        let status = try #require(try await queue.batches.status(of: other))
        #expect(status.counts[.downloaded] == 30 && status.state == .done)
        // None of them was asked, and none is on the list.
        #expect(fixture.origin.requestCount() == 32)
        #expect(try await queue.failedURLs.find(urls[7]).entry == nil)
    }
}

import Origin
import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite(.timeLimit(.minutes(1)))
struct PrefetchWorkerTests {
    @Test func everyURLEndsOnceAndTheWorkersCountsAddUpToTheBatchs() async throws {
        let fixture = try await WorkerFixture()
        for index in 0..<60 {
            fixture.origin.route(
                "/\(index).jpg", OriginResponse(body: GeneratedImage.jpeg(seed: UInt64(index), width: 64, height: 48)))
        }
        fixture.origin.route("/page.jpg", OriginResponse(body: Array("<!DOCTYPE html><html></html>".utf8)))
        fixture.origin.setFallback { _ in OriginResponse(status: 404) }
        var urls = (0..<60).map { fixture.origin.url("/\($0).jpg") }
        urls += (0..<10).map { fixture.origin.url("/missing\($0).jpg") }
        urls += [fixture.origin.url("/page.jpg"), "no url at all", "ftp://127.0.0.1/a.jpg", "http://10.1.2.3/a.jpg"]
        // Duplicates count, but are fetched once.
        urls += [fixture.origin.url("/0.jpg"), fixture.origin.url("/missing0.jpg")]
        let queue = try fixture.queue()
        let id = try await fixture.submit(urls, to: queue, jobSize: 7)
        let workers = try (0..<3).map { _ in try fixture.worker() }
        let own = try await withThrowingTaskGroup(of: PrefetchCounts.self) { group in
            for worker in workers { group.addTask { try await worker.run() } }
            return try await group.reduce(into: PrefetchCounts()) { $0 += $1 }
        }
        let status = try #require(try await queue.status(of: id))
        #expect(status.state == .done)
        #expect(status.counts == own)
        #expect(status.counts.finished == urls.count)
        var expected = PrefetchCounts()
        expected[.downloaded] = 60
        expected[.hit] = 1
        expected[.httpError] = 11
        expected[.badImage] = 1
        expected[.invalidURL] = 1
        expected[.refused] = 2
        expected.bytes = (0..<60).reduce(0) {
            $0 + GeneratedImage.jpeg(seed: UInt64($1), width: 64, height: 48).count
        }
        #expect(status.counts == expected)
        let sum = try await queue.workerCounts(of: id).values.reduce(into: PrefetchCounts()) { $0 += $1 }
        #expect(sum == expected)
        // One transfer serves every entry of an image. A failure is known to the other workers only with its report, so each of
        // them may have asked for the one failing duplicate once.
        #expect((0..<60).allSatisfy { fixture.origin.requestCount("/\($0).jpg") == 1 })
        #expect((1...3).contains(fixture.origin.requestCount("/missing0.jpg")))
        let failed = try await queue.read([["SMEMBERS", RedisArgument(queue.keys.failed)]])[0].array ?? []
        let listed = (0..<10).map { fixture.origin.url("/missing\($0).jpg") } + [fixture.origin.url("/page.jpg")]
        #expect(Set(failed.compactMap(\.string)) == Set(listed))
        #expect(try await queue.workers().isEmpty)
    }

    @Test func aSecondBatchHitsWhatIsThereAndAsksNobodyForListedURLs() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.route("/a.png", OriginResponse(body: GeneratedImage.png(seed: 1, width: 20, height: 20)))
        fixture.origin.setFallback { _ in OriginResponse(status: 404) }
        let urls = [fixture.origin.url("/a.png"), fixture.origin.url("/b.png")]
        let queue = try fixture.queue()
        _ = try await fixture.submit(urls, to: queue)
        _ = try await fixture.worker().run()
        let before = fixture.origin.requestCount()
        let second = try await fixture.submit(urls, to: queue)
        let counts = try await fixture.worker().run()
        #expect(second.hasSuffix(".2") || second.hasPrefix("list-"))
        #expect(counts[.hit] == 1)
        #expect(counts[.blacklisted] == 1)
        #expect(fixture.origin.requestCount() == before)
        var options = BatchOptions()
        options.retryFailed = true
        fixture.origin.route("/b.png", OriginResponse(body: GeneratedImage.png(seed: 2, width: 20, height: 20)))
        _ = try await fixture.submit(urls, to: queue, options: options)
        let third = try await fixture.worker().run()
        #expect(third[.hit] == 1)
        #expect(third[.downloaded] == 1)
        #expect(try await queue.read([["SCARD", RedisArgument(queue.keys.failed)]])[0].int == 0)
    }
}

import Glibc
import Origin
import Prefetch
import TestSupport
import Testing
import Threading
import WebImage

/// Tests of SDWebImage 5.21 (`SDWebImagePrefetcherTests`) under their names, through Redis and three worker processes.
@Suite("SDWebImagePrefetcherTests over processes", .timeLimit(.minutes(5)))
struct PrefetcherPortTests {
    private final class Counter: ImagePrefetcherDelegate {
        struct Counts: Equatable {
            var finished = 0, total = 0, skipped = 0, calls = 0
        }

        let delegate = Locked(Counts()), progress = Locked(Counts()), completion = Locked(Counts())
        /// Whether the delegate heard of each URL after the closure, and of the end before it.
        let isInOrder = Locked(true)

        func imagePrefetcher(
            _ imagePrefetcher: any ImagePrefetching, didPrefetch url: String, finishedCount: Int, totalCount: Int
        ) {
            delegate.withLock {
                $0.finished = finishedCount
                $0.total = totalCount
                $0.calls += 1
            }
            if progress.withLock({ $0.finished }) != finishedCount { isInOrder.withLock { $0 = false } }
        }

        func imagePrefetcher(
            _ imagePrefetcher: any ImagePrefetching, didFinishWithTotalCount totalCount: Int, skippedCount: Int
        ) {
            delegate.withLock { $0.skipped = skippedCount }
            if completion.withLock({ $0.calls }) != 0 { isInOrder.withLock { $0 = false } }
        }

        func onProgress(_ finished: Int, _ total: Int) {
            progress.withLock {
                $0.finished = finished
                $0.total = total
                $0.calls += 1
            }
        }

        func onCompletion(_ finished: Int, _ skipped: Int) {
            completion.withLock { $0 = Counts(finished: finished, skipped: skipped, calls: $0.calls + 1) }
        }
    }

    private func origin() throws -> OriginServer {
        let origin = try OriginServer()
        let image = OriginResponse(body: GeneratedImage.png(seed: 5, width: 10, height: 10))
        origin.setFallback { $0.path.hasSuffix(".png") ? image : OriginResponse(status: 404) }
        return origin
    }

    @Test
    func `04PrefetchWithMultipleArrayDifferentQueueWorks`() async throws {
        let b = try await RemoteBatch()
        let origin = try origin()
        let all = (0..<300).map { origin.url("/\($0).png") }
        let prefetcher = try DistributedImagePrefetcher(redisURL: b.redis.url)
        let (first, second) = (Counter(), Counter())
        async let one = prefetcher.prefetch(
            Array(all[..<200]), progress: first.onProgress, completed: first.onCompletion)
        async let two = prefetcher.prefetch(
            Array(all[100...]), progress: second.onProgress, completed: second.onCompletion)
        let tokens = try await [one, two]
        let workers = try await b.workers(3)
        for token in tokens { try await token.wait() }
        for worker in workers { #expect(await worker.wait() == .exited(0)) }
        for counter in [first, second] {
            #expect(counter.progress.withLock { $0 } == .init(finished: 200, total: 200, calls: 200))
            #expect(counter.completion.withLock { $0 } == .init(finished: 200, skipped: 0, calls: 1))
        }
        // What is in both lists was fetched once.
        #expect(origin.requestCount() == 300)
    }

    @Test
    func `05PrefetchLargeURLsAndDelegateWorks`() async throws {
        let b = try await RemoteBatch()
        let origin = try origin()
        let urls = (0..<2000).map { origin.url($0 % 40 == 7 ? "/\($0).bad" : "/\($0).png") }
        let prefetcher = try DistributedImagePrefetcher(redisURL: b.redis.url)
        let counter = Counter()
        prefetcher.delegate = counter
        let token = try await prefetcher.prefetch(
            urls, progress: counter.onProgress, completed: counter.onCompletion)
        let workers = try await b.workers(3)
        try await token.wait()
        for worker in workers { #expect(await worker.wait() == .exited(0)) }
        #expect(counter.progress.withLock { $0 } == .init(finished: 2000, total: 2000, calls: 2000))
        #expect(counter.delegate.withLock { $0 } == .init(finished: 2000, total: 2000, skipped: 50, calls: 2000))
        #expect(counter.completion.withLock { $0 } == .init(finished: 2000, skipped: 50, calls: 1))
        #expect(counter.isInOrder.withLock { $0 })
    }
}

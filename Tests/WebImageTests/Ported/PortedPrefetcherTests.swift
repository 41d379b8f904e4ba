import Glibc
import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

/// SDWebImage 5.21's tests of SDWebImagePrefetcher, against a loopback origin.
@Suite("Ported SDWebImagePrefetcherTests", .timeLimit(.minutes(5)))
struct PortedPrefetcherTests {
    private let fixture: ManagerFixture

    init() throws {
        fixture = try ManagerFixture()
    }

    @Test("SDWebImagePrefetcherTests 01 ThatSharedPrefetcherIsNotEqualToInitPrefetcher")
    func shared() async {
        await #expect(processExitsWith: .success) {
            let folder = TemporaryDirectory()
            setenv("XDG_CACHE_HOME", folder.path, 1)
            let prefetcher = ImagePrefetcher(manager: try ImageManager.shared)
            let (shared, again) = (try ImagePrefetcher.shared, try ImagePrefetcher.shared)
            precondition(prefetcher !== shared && shared === again)
        }
    }

    @Test("SDWebImagePrefetcherTests 02 PrefetchMultipleImages")
    func multipleImages() async throws {
        let urls = [20, 30, 40].map { fixture.image("/\($0)x\($0).png", size: $0).url }
        let manager = try fixture.manager()
        try await manager.cache.clearDisk()
        let calls = Locked(0)
        let end = await ImagePrefetcher(manager: manager).complete(urls) { finished, total in
            let calls = calls.withLock { calls in
                calls += 1
                return calls
            }
            #expect(calls == finished)
            #expect(finished <= total)
            #expect(total == urls.count)
        }
        #expect(end == PrefetchEnd(finished: 3, skipped: 0))
        #expect(calls.withLock { $0 } == 3)
        #expect(fixture.origin.requestCount() == 3)
        for url in urls { #expect(await manager.diskImageExists(for: url)) }
    }

    @Test("SDWebImagePrefetcherTests 03 PrefetchWithEmptyArrayWillCallTheCompletionWithAllZeros")
    func emptyArray() async throws {
        let log = EventLog()
        let prefetcher = ImagePrefetcher(manager: try fixture.manager())
        prefetcher.delegate = log
        let end = await prefetcher.complete([], progress: log.progress)
        #expect(end == PrefetchEnd(finished: 0, skipped: 0))
        #expect(log.lines == [])
        #expect(prefetcher.runningTokenCount == 0)
    }

    @Test("SDWebImagePrefetcherTests 04 PrefetchWithMultipleArrayDifferentQueueWorks")
    func differentQueues() async throws {
        let urls = [20, 30, 40].map { fixture.image("/\($0)x\($0).png", size: $0).url }
        let manager = try fixture.manager()
        let prefetcher = ImagePrefetcher(manager: manager)
        // Each list from a thread of its own.
        let pools = (0..<2).map { ThreadPool(threads: 1, name: "queue \($0)") }
        await withTaskGroup(of: Void.self) { group in
            for (index, list) in [urls.dropLast(), urls.dropFirst()].enumerated() {
                group.addTask(executorPreference: pools[index]) {
                    let calls = Locked(0)
                    let end = await prefetcher.complete(Array(list)) { _, _ in calls.withLock { $0 += 1 } }
                    #expect(end == PrefetchEnd(finished: 2, skipped: 0))
                    #expect(calls.withLock { $0 } == end?.finished)
                }
            }
        }
        // The URL that is in both was fetched once.
        #expect(fixture.origin.requestCount() == 3)
        #expect(try await manager.cache.totalDiskCount() == 3)
    }

    /// In SDWebImage 5 the delegate hears of a URL before the progress block does, in 3 and 4 after it; the order here is that of 3 and 4. At
    /// the end the delegate is first in all of them.
    @Test("SDWebImagePrefetcherTests 05 PrefetchLargeURLsAndDelegateWorks, with 2,000 URLs")
    func largeList() async throws {
        let body = GeneratedImage.png(seed: 1, width: 20, height: 20)
        fixture.origin.setFallback { _ in OriginResponse(body: body) }
        let urls = (1...2000).map { fixture.origin.url("/\($0)x\($0).png") }
        let manager = try fixture.manager()
        let prefetcher = ImagePrefetcher(manager: manager)
        let log = EventLog()
        let delegate = CountingDelegate(prefetcher)
        prefetcher.delegate = delegate
        let end = await prefetcher.complete(urls) { finished, total in
            log.progress(finished, total)
            // The delegate has heard of every URL but this one.
            #expect(delegate.finishedCount == finished - 1)
        }
        #expect(end == PrefetchEnd(finished: 2000, skipped: 0))
        #expect(log.lines == (1...2000).map { "progress \($0)/2000" })
        #expect(delegate.finishedCount == end?.finished)
        #expect(delegate.ends == [PrefetchEnd(finished: 2000, skipped: 0)])
        #expect(delegate.totals == [2000])
        #expect(delegate.urls.sorted() == urls.sorted())
        #expect(fixture.origin.requestCount() == 2000)
        #expect(try await manager.cache.totalDiskCount() == 2000)
    }

    @Test("SDWebImagePrefetcherTests 06 PrefetchCancelToken")
    func cancelToken() async throws {
        let urls = [20, 30, 40].map { fixture.image("/\($0)", fault: .stallBeforeHeader).url }
        let manager = try fixture.manager()
        let prefetcher = ImagePrefetcher(manager: manager)
        let token = prefetcher.prefetch(urls)
        #expect(prefetcher.runningTokenCount == 1)
        await fixture.origin.waitForRequests(3)
        token.cancel()
        #expect(prefetcher.runningTokenCount == 0)
        try await until { fixture.origin.openConnectionCount == 0 }
        #expect(await manager.downloader.currentDownloadCount == 0)
    }

    @Test("SDWebImagePrefetcherTests 07 DownloaderCancelDuringPrefetching")
    func downloaderCancels() async throws {
        let urls = [5000, 6000, 7000].map { fixture.image("/\($0)", size: 9, fault: .stall(after: 10)).url }
        let manager = try fixture.manager()
        var configuration = ImagePrefetcher.Configuration()
        configuration.maxConcurrentPrefetchCount = 3
        let prefetcher = ImagePrefetcher(manager: manager, configuration: configuration)
        async let end = prefetcher.complete(urls)
        await fixture.origin.waitForRequests(3)
        await manager.downloader.cancelAllDownloads()
        #expect(await end == PrefetchEnd(finished: 3, skipped: 3))
        #expect(manager.failedURLs.count == 0)
        #expect(try await manager.cache.totalDiskCount() == 0)
        #expect(fixture.origin.requestCount() == 3)
    }
}

/// What a delegate was told, all of it about one prefetcher.
private final class CountingDelegate: ImagePrefetcherDelegate {
    private struct State {
        var urls: [String] = []
        var finishedCount = 0
        var totals: Set<Int> = []
        var ends: [PrefetchEnd] = []
    }

    private let state = Locked(State())
    private let prefetcher: ImagePrefetcher

    init(_ prefetcher: ImagePrefetcher) { self.prefetcher = prefetcher }

    var urls: [String] { state.withLock { $0.urls } }
    var finishedCount: Int { state.withLock { $0.finishedCount } }
    var totals: Set<Int> { state.withLock { $0.totals } }
    var ends: [PrefetchEnd] { state.withLock { $0.ends } }

    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didPrefetch url: String, finishedCount: Int, totalCount: Int
    ) {
        #expect(imagePrefetcher === prefetcher)
        state.withLock { state in
            state.urls.append(url)
            state.finishedCount = finishedCount
            state.totals.insert(totalCount)
        }
    }

    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didFinishWithTotalCount totalCount: Int, skippedCount: Int
    ) {
        #expect(imagePrefetcher === prefetcher)
        state.withLock { $0.ends.append(PrefetchEnd(finished: totalCount + skippedCount, skipped: skippedCount)) }
    }
}

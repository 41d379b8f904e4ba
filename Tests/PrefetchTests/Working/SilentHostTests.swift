import Origin
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("Hosts that give no answer, and a worker's other URLs", .timeLimit(.minutes(5)))
struct SilentHostTests {
    @Test(
        "Who waits for a slot gets one when those before it only wait for an answer, also where nothing is claimed any more"
    )
    func room() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { _ in OriginResponse(body: [1], fault: .stallBeforeHeader) }
        let worker = try fixture.worker(
            configure: { $0.maxConcurrentDownloads = .auto },
            downloads: {
                $0.maxStalledDownloads = 1000
                $0.stalledAfter = 0.1
                $0.downloadTimeout = 100
            })
        // As many as there are slots, each with a URL whose server is silent.
        let count = worker.context.slots.limit
        #expect(await worker.context.slots.acquire(count))
        let loads = (0..<count).map { index in
            let url = fixture.origin.url("/\(index)")
            return Task { try? await worker.context.manager.downloader.download(url) }
        }
        let granted = Locked(false)
        let next = Task {
            let isGranted = await worker.context.slots.acquire()
            granted.withLock { $0 = isGranted }
        }
        #expect(await becomes { worker.context.slots.waiting == 1 })
        // No claim loop is there.
        let loop = Task { await worker.run(.room) }
        #expect(await becomes { granted.withLock { $0 } })
        #expect(await worker.context.manager.downloader.currentDownloadCount == count)
        for task in loads { task.cancel() }
        loop.cancel()
        _ = await (loop.value, next.value)
        for load in loads { _ = await load.value }
    }
}

import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("What transfers spend their time with", .timeLimit(.minutes(5)))
struct TransferWorkTests {
    @Test("Transfers before their header and slots that are all in use are seen, and hosts that hold URLs are named")
    func answering() async throws {
        let server = try OriginServer()
        server.setFallback { request in
            request.path.hasPrefix("/slow")
                ? OriginResponse(fault: .stallBeforeHeader) : OriginResponse(body: [1, 2, 3])
        }
        let downloader = try makeDownloader { ($0.maxConcurrentDownloads, $0.maxConnectionsPerHost) = (8, 2) }
        #expect(try await downloader.download(server.url("/a")).body.bytes == [1, 2, 3])
        let tasks = (0..<5).map { index in Task { await downloader.failure(server.url("/slow/\(index)")) } }
        await server.waitForRequests(3)
        // Samples are some time apart.
        let before = await downloader.activity.work
        try await until { await downloader.activity.work.samples > before.samples + 1 }
        let activity = await downloader.activity
        #expect(activity.work.full == 0 && activity.work.bytes > 3 && activity.work.bytes < 1_000)
        #expect(activity.work.answering > before.answering && activity.work.receiving == before.receiving)
        #expect(activity.waitingForHost == 3)
        #expect(
            await downloader.hostWaits == [HostWait(host: "127.0.0.1", reason: .transfers, count: 3)])
        await downloader.setMaxConcurrentDownloads(2)
        try await until { await downloader.activity.work.full > 0 }
        await downloader.cancelAllDownloads()
        for task in tasks { #expect(await task.value?.code == .cancelled) }
        #expect(await downloader.hostWaits == [])
        #expect(downloader.processorTime > .zero)
    }

    @Test("A bandwidth limit that holds transfers back is seen, and so are the bytes that pass it")
    func limited() async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: pseudoImage(400_000)) }
        let downloader = try makeDownloader { $0.limitRate = 200_000 }
        let task = Task { await downloader.failure(server.url("/a")) }
        try await until { await downloader.activity.work.limited > 0 }
        try await until { await downloader.activity.work.receiving > 0 }
        #expect(await downloader.activity.work.bytes > 0)
        task.cancel()
        #expect(await task.value?.code == .cancelled)
    }
}

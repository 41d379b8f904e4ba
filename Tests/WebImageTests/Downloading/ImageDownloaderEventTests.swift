import Origin
import TestSupport
import Testing

@testable import WebImage

/// SDWebImageDownloader's notifications, as a stream.
@Suite("Events of a downloader", .timeLimit(.minutes(5)))
struct ImageDownloaderEventTests {
    private let origin: OriginServer
    private let downloader: ImageDownloader

    init() throws {
        origin = try OriginServer()
        downloader = try makeDownloader()
    }

    /// The events of one thing, until the session is over.
    private func events(_ body: () async throws -> Void) async throws -> [DownloadEvent] {
        let stream = downloader.events()
        try await body()
        await downloader.invalidateSessionAndCancel()
        return await stream.reduce(into: []) { $0.append($1) }
    }

    @Test("A good one starts, has a response, stops and finishes, and says where its time went")
    func good() async throws {
        origin.route("/a", OriginResponse.redirect(to: "/b"))
        origin.route("/b", OriginResponse(body: pseudoImage(5000)))
        let url = origin.url("/a")
        let events = try await events { _ = try await downloader.download(url, options: .progressive) }
        #expect(events.map(\.name).filter { $0 != .progress } == [.start, .response, .stop, .finish])
        #expect(events.allSatisfy { $0.url == url })
        #expect(events.contains { $0.name == .progress && $0.receivedBytes > 0 && $0.expectedBytes == 5000 })
        let response = try #require(events.first { $0.name == .response })
        #expect(response.statusCode == 200 && response.expectedBytes == 5000)
        let finish = try #require(events.last)
        #expect(finish.statusCode == 200 && finish.receivedBytes == 5000 && finish.httpVersion == "1.1")
        let timing = try #require(finish.timing)
        #expect(timing.total > 0 && timing.firstByte > 0 && timing.firstByte <= timing.total)
        // The second hop was made on the connection of the first.
        #expect(timing.reusedConnection)
        #expect(zip(events, events.dropFirst()).allSatisfy { $0.time <= $1.time })
    }

    @Test(
        "A bad one has a response for each try, and stops with its error; progress is told only where it is asked for")
    func bad() async throws {
        origin.route("/a", OriginResponse(status: 503, body: [1]))
        let url = origin.url("/a")
        let events = try await events { #expect(await downloader.failure(url) != nil) }
        #expect(events.map(\.name) == [.start, .response, .response, .response, .stop])
        #expect(events.last?.error?.httpStatus == 503 && events.last?.tries == 3)
    }

    @Test("One that is cancelled stops; one that never began says nothing")
    func cancelled() async throws {
        origin.setFallback { _ in OriginResponse(fault: .stallBeforeHeader) }
        await downloader.setMaxConcurrentDownloads(1)
        let (running, waiting) = (origin.url("/a"), origin.url("/b"))
        let events = try await events {
            let first = Task { await downloader.failure(running) }
            await origin.waitForRequests(1)
            let second = Task { await downloader.failure(waiting) }
            try await until { await downloader.currentDownloadCount == 2 }
            second.cancel()
            first.cancel()
            _ = (await first.value, await second.value)
        }
        #expect(events.map(\.name) == [.start, .stop] && events.allSatisfy { $0.url == running })
        #expect(events.last?.error?.code == .cancelled)
    }

    @Test("One that is cancelled while its next try waits for a slot stops once")
    func cancelledBeforeItsNextTry() async throws {
        origin.route("/busy", OriginResponse(status: 503, body: [1], fault: .stallBeforeHeader))
        origin.route("/slow", OriginResponse(body: [1], fault: .stallBeforeHeader))
        origin.route("/b", OriginResponse(body: [2]))
        let downloader = try makeDownloader {
            $0.maxConcurrentDownloads = 1
            $0.maxStalledDownloads = 0
        }
        let stream = downloader.events()
        let url = origin.url("/busy")
        let busy = Task { await downloader.failure(url) }
        await origin.waitForRequests(1, to: "/busy")
        let slow = Task { try await downloader.download(origin.url("/slow")) }
        try await until { await downloader.currentDownloadCount == 2 }
        // The other one takes the slot before the next try.
        origin.release("/busy")
        try await until { await downloader.states(of: [url])[url]?.phase == .waitingForSlot }
        busy.cancel()
        #expect(await busy.value?.code == .cancelled)
        // Now it would be its turn.
        origin.release("/slow")
        _ = try await slow.value
        _ = try await downloader.download(origin.url("/b"))
        await downloader.invalidateSessionAndCancel()
        let names = await stream.reduce(into: [DownloadEvent.Name]()) { if $1.url == url { $0.append($1.name) } }
        #expect(names == [.start, .response, .stop])
    }

    @Test("Every caller hears of the bytes, with 0 where their number is not known")
    func progress() async throws {
        origin.route("/a", OriginResponse(body: pseudoImage(5000), framing: .chunked(size: 1000)))
        let told = Told()
        _ = try await downloader.download(origin.url("/a")) { told.append($0, $1) }
        let calls = told.calls
        #expect(calls.first == [0, -1] && calls.dropFirst().first == [0, 0] && calls.last == [5000, 0])
        #expect(zip(calls, calls.dropFirst()).allSatisfy { $0[0] <= $1[0] })
    }
}

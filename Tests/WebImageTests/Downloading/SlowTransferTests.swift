import Origin
import Testing

@testable import WebImage

@Suite("Transfers that are too slow", .timeLimit(.minutes(5)))
struct SlowTransferTests {
    private static let body = pseudoImage(4000)

    @Test(
        "A URL that the speed limit ended is not tried again on a host that has completed no body, and is on one that has"
    )
    func speedLimit() async throws {
        for isProven in [false, true] {
            let origin = try OriginServer()
            origin.route("/good", OriginResponse(body: Self.body))
            origin.route("/loris", OriginResponse(body: Self.body, fault: .drip(bytes: 1, seconds: 0.02)))
            let downloader = try makeDownloader { $0.lowSpeedTime = 0.3 }
            if isProven { _ = try await downloader.download(origin.url("/good")) }
            let error = try #require(await downloader.failure(origin.url("/loris")))
            #expect(error.code == .timedOut && error.message.hasPrefix("less than 1000 bytes/s"), "\(error)")
            #expect(error.tries == (isProven ? 3 : 1))
            #expect(origin.requests.count { $0.path == "/loris" } == (isProven ? 3 : 1))
        }
    }

    @Test("A silent URL is tried again on such a host until it has had the time of one that is slow")
    func silence() async throws {
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(body: Self.body, fault: .stallBeforeHeader) }
        let downloader = try makeDownloader {
            $0.downloadTimeout = 0.6
            $0.lowSpeedTime = 0.8
        }
        let error = try #require(await downloader.failure(origin.url("/silent")))
        #expect(error.code == .timedOut && error.tries == 2 && origin.requestCount() == 2, "\(error)")
    }

    @Test("A URL below the speed has its time in all, over its tries; above it there is no limit")
    func slowTime() async throws {
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(body: Self.body, fault: .drip(bytes: 50, seconds: 0.02)) }
        let slow = try makeDownloader {
            $0.lowSpeedLimit = 0
            $0.maxSlowTime = 0.4
        }
        let error = try #require(await slow.failure(origin.url("/a")))
        #expect(
            error.code == .timedOut && error.tries == 1
                && error.message == "not done after 0.4 s at less than 65536 bytes/s with a connection, in 1 try",
            "\(error)")
        let fast = try makeDownloader {
            $0.maxSlowTime = 0.4
            $0.slowSpeed = 500
        }
        #expect(try await fast.download(origin.url("/b")).body.count == Self.body.count)
    }

    @Test("A body in drips is known after the interval, between its drips, too, and until it comes in whole segments")
    func drips() {
        var progress = TransferProgress()
        progress.beginHop(now: 0)
        (progress.requestWasSent, progress.hasHeader) = (true, true)
        func isDripping(at now: Double, received count: Int) -> Bool {
            if count > 0 { progress.didReceive(count) }
            progress.checkForDrips(now: now, every: 0.25, lowSpeedLimit: 1000)
            return progress.isDripping
        }
        #expect(!isDripping(at: 0.1, received: 1))
        #expect(isDripping(at: 0.25, received: 1))
        // Nothing has come: nothing new is known.
        #expect(isDripping(at: 0.75, received: 0))
        #expect(isDripping(at: 1.2, received: 1))
        // A segment, and what is fast in small pieces.
        #expect(!isDripping(at: 1.5, received: 1400))
        #expect(isDripping(at: 1.8, received: 10))
        #expect(!isDripping(at: 2.1, received: 400))
    }

    @Test("Only time with a connection counts, of all tries together")
    func spentTime() {
        var configuration = ImageDownloader.Configuration()
        var (spent, progress) = (TransferTime(), TransferProgress())
        func count(_ now: Double, bytes: Int = 0, isThrottled: Bool = false) {
            progress.bytes += bytes
            spent.count(progress, isThrottled: isThrottled, now: now)
        }
        progress.beginHop(now: 0)
        spent.beginHop()
        // Neither the connection nor the pause between two tries.
        count(9)
        progress.requestWasSent = true
        count(10)
        count(40, bytes: 1000)
        progress.beginHop(now: 100)
        spent.beginHop()
        progress.requestWasSent = true
        count(100)
        count(120, bytes: 500)
        count(150, isThrottled: true)
        #expect(spent.seconds == 50 && spent.bytes == 1500)
        #expect(spent.check(configuration, tries: 2) == nil)
        count(160)
        #expect(spent.check(configuration, tries: 2)?.code == .timedOut)
        count(160, bytes: 60 << 16)
        #expect(spent.check(configuration, tries: 2) == nil)
        configuration.maxTotalTime = 60
        #expect(spent.check(configuration, tries: 2)?.message == "not done after 60 s with a connection, in 2 tries")
        // 64 MiB at 1 MB/s.
        var large = TransferTime()
        progress.beginHop(now: 0)
        progress.requestWasSent = true
        for second in 0...67 {
            large.count(progress, isThrottled: false, now: Double(second))
            #expect(large.check(ImageDownloader.Configuration(), tries: 1) == nil)
            progress.bytes += 1_000_000
        }
    }
}

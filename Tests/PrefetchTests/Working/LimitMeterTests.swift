import Origin
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("How a worker measures what holds it back", .timeLimit(.minutes(5)))
struct LimitMeterTests {
    @Test("The cause of most of the last five seconds is shown; single seconds change nothing, and it does not flicker")
    func majority() {
        var meter = LimitMeter()
        func take(_ causes: [LimitCause]) -> [LimitCause] { causes.map { meter.take($0, for: .seconds(1)) } }
        #expect(take([.starting]) == [.starting])
        #expect(take([.link, .link, .link, .link]) == [.link, .link, .link, .link])
        #expect(take([.servers, .link, .servers, .link, .servers]) == [.link, .link, .link, .link, .servers])
        #expect(take([.servers, .list, .disk, .redis]) == [.servers, .servers, .servers, .servers])
        // In the end two of each: the one that is shown stays.
        #expect(take([.list, .servers, .list, .servers]) == [.list, .list, .list, .list])
        // A pause begins and ends at once.
        #expect(take([.paused, .link]) == [.paused, .link])
        // A long time without a reading weighs no more than what is looked at.
        #expect(meter.take(.list, for: .seconds(3_600)) == .list)
        #expect(take([.link, .link, .link]) == [.list, .list, .link])
    }

    @Test(
        "What is shown has the figures it was told from, and a worker without a URL is held by nothing that was before")
    func figures() {
        func figures(_ slotsFull: Int) -> WorkerFigures {
            var figures = WorkerFigures()
            figures.slotsFull = slotsFull
            return figures
        }
        var meter = LimitMeter()
        for share in 91...94 { #expect(meter.take(.servers, for: .seconds(1), figures(share)) == .servers) }
        #expect(meter.take(.list, for: .seconds(1), figures(0)) == .servers && meter.shownFigures == figures(94))
        #expect(meter.take(.list, for: .seconds(1), figures(1), isIdle: true) == .list)
        #expect(meter.shownFigures == figures(1))
        // What is there then counts from now on.
        #expect(meter.take(.link, for: .seconds(1), figures(60)) == .link && meter.shownFigures == figures(60))
    }

    @Test("Calls of Redis that overlap count once, and a pending one counts from its beginning")
    func redisCalls() {
        let calls = RedisCalls()
        let start = ContinuousClock.now
        #expect(calls.take(at: start) == (.zero, .zero))
        let first = calls.begin(at: start)
        let second = calls.begin(at: start + .milliseconds(100))
        calls.end(first, at: start + .milliseconds(150))
        calls.end(second, at: start + .milliseconds(300))
        calls.end(second, at: start + .milliseconds(400))
        #expect(calls.take(at: start + .seconds(1)) == (.milliseconds(200), .milliseconds(300)))
        let third = calls.begin(at: start + .milliseconds(1_500))
        #expect(calls.take(at: start + .seconds(2)) == (.milliseconds(500), .milliseconds(500)))
        #expect(calls.take(at: start + .seconds(3)) == (.milliseconds(1_500), .seconds(1)))
        calls.end(third, at: start + .seconds(3))
        #expect(calls.take(at: start + .seconds(4)) == (.milliseconds(1_500), .zero))
        #expect(calls.take(at: start + .seconds(5)) == (.zero, .zero))
    }

    @Test("A file call that does not return is told as the disk, and counted for the batch")
    func disk() async throws {
        let fixture = try await WorkerFixture()
        let picture = GeneratedImage.png(seed: 4, width: 12, height: 12)
        fixture.origin.setFallback { _ in OriginResponse(body: picture, delay: 0.2) }
        let queue = try fixture.queue()
        let worker = try fixture.worker { ($0.maxConcurrentDownloads, $0.burst) = (4, false) }
        let id = try await fixture.submit(
            (0..<2_000).map { fixture.origin.url("/\($0).png") }, to: queue, jobSize: 16)
        let run = Task { try await worker.run() }
        func limit() async throws -> LimitCause? { try await queue.workerRecords.all().first?.report.limit }
        try await until { try await limit() == .servers }
        let calls = worker.context.manager.cache.disk.folder.calls
        let call = calls.begin()
        try await until { try await limit() == .disk }
        calls.end(call)
        try await until { try await limit() != .disk }
        worker.stop()
        _ = try await run.value
        let limits = try #require(try await queue.batches.status(of: id)).limits
        #expect(limits[.servers] > 0 && limits[.disk] > 0)
    }
}

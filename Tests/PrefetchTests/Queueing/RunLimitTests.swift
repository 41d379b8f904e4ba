import Testing
import WebImage

@testable import Queue

@Suite("What holds a run back", .timeLimit(.minutes(5)))
struct RunLimitTests {
    private func batch(_ change: (inout BatchStatus) -> Void = { _ in }) -> BatchStatus {
        var status = BatchStatus(
            id: "b", state: .running, total: 1_000, counts: PrefetchCounts(), created: 1_000, ended: 0, at: 60_000)
        change(&status)
        return status
    }

    private func worker(
        _ limit: LimitCause, inFlight: Int = 0, waiting: Int = 0, leaseLeft: Int = 9_000,
        _ change: (inout WorkerReport) -> Void = { _ in }
    ) -> WorkerRecord {
        var report = WorkerReport()
        (report.limit, report.inFlight, report.waitingForHost) = (limit, inFlight, waiting)
        report.maxConcurrentDownloads = 32
        change(&report)
        return WorkerRecord(id: "w", report, leaseLeft: leaseLeft)
    }

    @Test("The cause of most of the open work is named, and how many workers share it")
    func most() throws {
        let workers = [
            "a": worker(.politeness, waiting: 300), "b": worker(.politeness, waiting: 200),
            "c": worker(.servers, inFlight: 32), "d": worker(.list),
        ]
        let limit = try #require(RunLimit(workers: workers, batches: [batch()]))
        #expect(limit.cause == .politeness && limit.workers == 2 && limit.allWorkers == 4)
        #expect(
            limit.report.waitingForHost == 500 && limit.report.maxConcurrentDownloads == 64
                && limit.report.transferring == 0)
        // Workers that have nothing are named where no other has anything.
        let idle = ["a": worker(.list), "b": worker(.list), "c": worker(.servers, inFlight: 1)]
        #expect(RunLimit(workers: idle, batches: [batch()])?.cause == .servers)
        #expect(RunLimit(workers: ["a": worker(.list)], batches: [batch()])?.cause == .list)
    }

    @Test(
        "Hosts of several workers are one host each, the three with most URLs; rates are added, times are the longest")
    func hosts() throws {
        func waiting(_ hosts: [(String, Int)], _ received: Int, _ redis: Int) -> WorkerRecord {
            worker(.politeness, waiting: 10) { report in
                report.figures.hostWaits = hosts.map { HostWait(host: $0.0, reason: .transfers, count: $0.1) }
                (report.figures.received, report.figures.redisLongest) = (received, redis)
            }
        }
        let limit = try #require(
            RunLimit(
                workers: [
                    "a": waiting([("x", 5), ("y", 4), ("z", 1)], 7, 30), "b": waiting([("y", 4), ("w", 2)], 8, 20),
                ], batches: [batch()]))
        #expect(limit.report.figures.hostWaits.map { "\($0.host) \($0.count)" } == ["y 8", "x 5", "w 2"])
        #expect(limit.report.figures.received == 15 && limit.report.figures.redisLongest == 30)
    }

    @Test("Pauses, missing workers and the state of the list are told from the batches")
    func batches() throws {
        let one = ["a": worker(.link, inFlight: 32)]
        #expect(RunLimit(workers: one, batches: []) == nil)
        #expect(RunLimit(workers: one, batches: [batch { $0.state = .done }]) == nil)
        let paused = try #require(RunLimit(workers: one, batches: [batch { $0.isPaused = true }]))
        #expect(paused.cause == .paused && paused.isBatchPaused && !paused.isQueuePaused)
        #expect(RunLimit(workers: one, batches: [batch { $0.isPaused = true }, batch()])?.cause == .link)
        #expect(RunLimit(workers: [:], batches: [batch()])?.cause == .workers)
        #expect(RunLimit(workers: ["a": worker(.link, leaseLeft: -1)], batches: [batch()])?.cause == .workers)
        let held = worker(.link, inFlight: 3) { report in
            report.held = WorkerHold(["held": "disk", "beat": "5000", "held_ms": "1000"])
        }
        #expect(RunLimit(workers: ["a": held], batches: [batch()])?.cause == .disk)
        let byHand = worker(.link, inFlight: 3) { $0.isPaused = true }
        #expect(RunLimit(workers: ["a": byHand], batches: [batch()])?.cause == .paused)
        let list = ["a": worker(.list)]
        #expect(RunLimit(workers: list, batches: [batch()])?.list == .queued)
        func feeding(_ ago: Int, full: Int = 0) -> BatchStatus {
            batch { ($0.isSealed, $0.fed, $0.full, $0.pushed) = (false, $0.at - ago, full, 10) }
        }
        #expect(RunLimit(workers: list, batches: [feeding(1_000)])?.list == .feeding)
        #expect(RunLimit(workers: list, batches: [feeding(6_000)])?.list == .stopped)
        #expect(RunLimit(workers: list, batches: [feeding(1_000, full: 59_500)])?.list == .full)
    }

    @Test("Times of causes are added by batch, once for each token, and read again")
    func times() async throws {
        let f = try await QueueFixture()
        try await f.fill("b", sizes: [1], fields: [("keep", "600")])
        try await f.join("w")
        var tally = HostTally()
        #expect(tally.isEmpty)
        tally.add(.servers, milliseconds: 1_500, of: ["b", "gone"])
        tally.add(.servers, milliseconds: 500, of: ["b"])
        tally.add(.politeness, milliseconds: 700, of: ["b"])
        tally.add(.link, milliseconds: 0, of: ["b"])
        for _ in 0..<2 { try await f.queue.hosts.tally(tally, worker: "w", token: "one") }
        try await f.queue.hosts.tally(tally, worker: "w", token: "two")
        let limits = try #require(try await f.queue.views.snapshot(of: "b")).status.limits
        #expect(limits[.servers] == 4_000 && limits[.politeness] == 1_400 && limits.total == 5_400)
        #expect(limits.causes == [.servers, .politeness])
        let number = try #require(LimitCause.allCases.firstIndex(of: .redis))
        try await f.redis("HSET", f.keys.batch("b"), "m\(number)", "-7", "m99", "5", "m0", "x")
        #expect(try await f.queue.views.snapshot(of: "b")?.status.limits == limits)
    }
}

import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Workers as they are shown", .timeLimit(.minutes(5)))
struct WorkerRecordTests {
    @Test("Present ones come by name with their lease, then those that are gone, the newest first")
    func states() async throws {
        let f = try await QueueFixture()
        #expect(try await f.queue.workerRecords.all().isEmpty)
        for name in ["c", "b", "a", "old"] {
            let about = [("host", "h"), ("pid", "7"), ("version", "1")]
            #expect(try await f.queue.workers.join(worker: name, lease: 60_000, about: about))
        }
        _ = try await f.queue.workers.beat(
            worker: "a", lease: 60_000, trouble: false, batches: [],
            about: [
                ("in_flight", "5"), ("checking", "3"), ("waiting_for_host", "2"),
                ("trouble", "the disk is full"),
            ])
        try await f.redis("ZADD", f.keys.workers, "XX", "1", "b")
        try await f.queue.jobs.release(worker: "old", leaving: true)
        #expect(try await f.queue.workers.reap(worker: "c") == .reaped(worker: "c", jobs: 0))
        try await f.redis("HSET", f.keys.worker("old"), "ended", "5")
        try await f.redis("ZADD", f.keys.gone, "XX", "5", "old")
        let records = try await f.queue.workerRecords.all()
        #expect(records.map(\.id) == ["a", "b", "c", "old"])
        #expect(records.map(\.state) == [.running, .overdue, .lost, .left])
        let first = try #require(records.first)
        #expect(
            first.report.host == "h" && first.report.pid == 7 && first.report.version == "1"
                && first.report.trouble == "the disk is full")
        #expect(first.report.inFlight == 5 && first.report.checking == 3 && first.report.waitingForHost == 2)
        let (silence, left) = (try #require(first.silence), try #require(first.leaseLeft))
        #expect(silence >= 0 && left > 0 && silence + left == 60_000)
        #expect(records[1].leaseLeft.map { $0 < 0 } == true)
        #expect(records[2].leaseLeft == nil && records[2].silence == nil && records[2].ended > 5)
        #expect(records[3].ended == 5)
    }

    @Test("What a worker was first to settle is counted in its record by the report itself")
    func counts() async throws {
        let f = try await QueueFixture()
        try await f.fill("x", sizes: [3])
        try await f.fill("y", sizes: [2])
        try await f.join("w", "v")
        for sequence in 1...2 {
            let job = try await f.claim("w", sequence)[0].job
            try await f.finish(job, "w", job.batch == "x" ? .downloaded : .timeout)
            // What is settled counts once.
            try await f.finish(job, "v", .httpError)
        }
        try await f.queue.jobs.release(worker: "w", leaving: true)
        let records = try await f.queue.workerRecords.all()
        #expect(records.map(\.id) == ["v", "w"])
        #expect(records[1].report.finished == 5 && records[1].report.skipped == 2 && records[1].report.bytes == 300)
        #expect(records[0].report.finished == 0)
        // Of one that nobody knows nothing begins to be known.
        try await f.fill("z", sizes: [1])
        let job = try await f.claim("v", 1)[0].job
        try await f.redis("DEL", f.keys.worker("v"))
        try await f.finish(job, "v", .downloaded)
        #expect(try await f.redis("EXISTS", f.keys.worker("v")).int == 0)
    }

    @Test("Workers are read with as many commands however many batches there were, and those that are gone for a day")
    func bounded() async throws {
        let f = try await QueueFixture()
        try await f.join("here", "gone", "lost")
        try await f.queue.jobs.release(worker: "gone", leaving: true)
        #expect(try await f.queue.workers.reap(worker: "lost") == .reaped(worker: "lost", jobs: 0))
        func commands() async throws -> Int {
            let text = try await f.redis("INFO", "commandstats").string ?? ""
            return text.matches(of: /calls=(\d+)/).reduce(0) { $0 + (Int($1.1) ?? 0) }
        }
        func cost() async throws -> Int {
            let before = try await commands()
            #expect(try await f.queue.workerRecords.all().map(\.id).sorted() == ["gone", "here", "lost"])
            #expect(try await f.queue.workerRecords.lost(since: 0) == ["lost"])
            return try await commands() - before
        }
        let few = try await cost()
        for number in 0..<50 { try await f.fill("b\(number)", sizes: [1]) }
        #expect(try await cost() == few)
        // What is over a day old goes with the next that goes.
        try await f.redis("ZADD", f.keys.gone, "XX", "1", "gone")
        try await f.queue.jobs.release(worker: "here", leaving: true)
        #expect(try await f.redis("ZRANGE", f.keys.gone, "0", "-1").array?.compactMap(\.string) == ["lost", "here"])
    }
}

import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Workers as they are shown", .timeLimit(.minutes(1)))
struct WorkerRecordTests {
    @Test("Present ones come by name with their lease, then those that are gone, the newest first")
    func states() async throws {
        let f = try await QueueFixture()
        #expect(try await f.queue.workerRecords.all().records.isEmpty)
        for name in ["c", "b", "a", "old"] {
            let about = [("host", "h"), ("pid", "7"), ("version", "1")]
            #expect(try await f.queue.workers.join(worker: name, lease: 60_000, about: about))
        }
        _ = try await f.queue.workers.beat(
            worker: "a", lease: 60_000, trouble: false, batches: [],
            about: [
                ("in_flight", "5"), ("checking", "3"), ("waiting_for_host", "2"), ("finished", "9"), ("skipped", "1"),
                ("bytes", "70"),
                ("trouble", "the disk is full"),
            ])
        try await f.redis("ZADD", f.keys.workers, "XX", "1", "b")
        try await f.queue.jobs.release(worker: "old", leaving: true)
        try await f.redis("HSET", f.keys.worker("old"), "ended", "5")
        #expect(try await f.queue.workers.reap(worker: "c") == .reaped(worker: "c", jobs: 0))
        let (records, isComplete) = try await f.queue.workerRecords.all()
        #expect(isComplete)
        #expect(records.map(\.id) == ["a", "b", "c", "old"])
        #expect(records.map(\.state) == [.running, .overdue, .lost, .left])
        let first = try #require(records.first)
        #expect(
            first.report.host == "h" && first.report.pid == 7 && first.report.version == "1"
                && first.report.trouble == "the disk is full")
        #expect(first.report.inFlight == 5 && first.report.checking == 3 && first.report.waitingForHost == 2)
        #expect(first.finished == 9 && first.skipped == 1 && first.bytes == 70)
        let (silence, left) = (try #require(first.silence), try #require(first.leaseLeft))
        #expect(silence >= 0 && left > 0 && silence + left == 60_000)
        #expect(records[1].leaseLeft.map { $0 < 0 } == true)
        #expect(records[2].leaseLeft == nil && records[2].silence == nil && records[2].ended > 5)
        #expect(records[3].ended == 5)
    }

    @Test("A worker that left before it spoke again has the counts that the batches have of it")
    func counts() async throws {
        let f = try await QueueFixture()
        try await f.fill("x", sizes: [3])
        try await f.fill("y", sizes: [2])
        try await f.join("w", "v")
        for sequence in 1...2 {
            let job = try await f.claim("w", sequence)[0].job
            try await f.finish(job, "w", job.batch == "x" ? .downloaded : .timeout)
        }
        try await f.queue.jobs.release(worker: "w", leaving: true)
        let records = try await f.queue.workerRecords.all().records
        #expect(records.map(\.id) == ["v", "w"])
        #expect(records[1].finished == 5 && records[1].skipped == 2 && records[1].bytes == 300)
        #expect(records[0].finished == 0)
        // What they have left Redis with is in its own word only.
        try await f.redis("HSET", f.keys.worker("w"), "finished", "100", "skipped", "1")
        let again = try #require(try await f.queue.workerRecords.all().records.last)
        #expect(again.finished == 100 && again.skipped == 2)
    }
}

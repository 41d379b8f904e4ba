import Redis
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("URLs that a worker cannot store", .timeLimit(.minutes(5)))
struct UnstoredTests {
    private func tell(
        _ f: QueueFixture, _ worker: String, _ claim: QueueJobs.Claim, _ position: Int, _ tries: Int = 1
    ) async throws -> QueueJobs.Unstored {
        try await f.queue.jobs.unstored(worker: worker, claim: claim.name, position: position, tries: tries)
    }

    /// The job goes from one worker to another.
    private func pass(_ f: QueueFixture, _ from: String, _ to: String, _ sequence: Int) async throws -> QueueJobs.Claim
    {
        try await f.queue.jobs.release(worker: from, leaving: false)
        return try #require(try await f.claim(to, sequence).first)
    }

    @Test("A worker alone tries twice, and a repeated call changes nothing")
    func alone() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [4])
        try await f.join("a")
        let claim = try await f.claim("a", 1)[0]
        #expect(try await tell(f, "a", claim, 2) == .tryAgain)
        #expect(try await tell(f, "a", claim, 2) == .tryAgain)
        #expect(try await f.redis("HGET", f.keys.tries("b"), "\(claim.job.name)?").string == "2 1 a\n")
        #expect(try await tell(f, "a", claim, 3) == .tryAgain)
        #expect(try await tell(f, "a", claim, 2, 2) == .end)
        #expect(try await f.redis("HGET", f.keys.tries("b"), "\(claim.job.name)?").string == "3 1 a\n2 2 a\n")
        // It is no death.
        let passed = try await pass(f, "a", "a", 2)
        #expect(passed.deliveries == 0 && passed.marks == 0)
        #expect(try await f.findings("b") == [])
        // Known as long as a URL of the job is open.
        let part = QueueFixture.report(claim.job, [.downloaded, nil, .notStored, .notStored], isFinal: false)
        _ = try await f.queue.reports.send([part], worker: "a")
        #expect(try await f.redis("HLEN", f.keys.tries("b")).int == 1)
        let rest = QueueFixture.report(claim.job, [nil, .downloaded, nil, nil])
        _ = try await f.queue.reports.send([rest], worker: "a")
        #expect(try await f.redis("EXISTS", f.keys.tries("b")).int == 0)
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.state == .done && status.counts[.notStored] == 2 && status.counts.skipped == 2)
        #expect(try await f.queue.failedURLs.count() == 0)
        #expect(try await f.findings("b") == [])
    }

    @Test("Every worker that works tries it once; paused, held, troubled and lost ones are not waited for")
    func all() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2])
        try await f.join("a", "b", "c", "d", "e", "f")
        try await f.redis("HSET", f.keys.worker("c"), "trouble", "disk full")
        try await f.redis("HSET", f.keys.worker("d"), "held", "disk")
        try await f.redis("HSET", f.keys.worker("e"), "paused", "1")
        try await f.expire("f")
        let first = try await f.claim("a", 1)[0]
        #expect(try await tell(f, "a", first, 0) == .leave)
        let second = try await pass(f, "a", "b", 1)
        // Who has it no more has no say.
        #expect(try await tell(f, "a", first, 0, 9) == .leave)
        #expect(try await tell(f, "b", second, 1) == .leave)
        #expect(try await tell(f, "b", second, 0) == .end)
        // One that works again counts again.
        try await f.redis("HSET", f.keys.worker("c"), "trouble", "")
        #expect(try await tell(f, "b", second, 0) == .leave)
        // The others leave: it is alone, and has tried once.
        for worker in ["a", "c", "d", "e", "f"] { try await f.queue.jobs.release(worker: worker, leaving: true) }
        #expect(try await tell(f, "b", second, 0) == .tryAgain)
        #expect(try await tell(f, "b", second, 0, 2) == .end)
    }

    @Test("A worker under a new name is no other worker, while its old one is still registered")
    func renamed() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1])
        for name in ["a", "a.1"] {
            let about = [("host", "h"), ("pid", "7")]
            #expect(try await f.queue.workers.join(worker: name, lease: 60_000, about: about))
        }
        let first = try await f.claim("a", 1)[0]
        #expect(try await tell(f, "a", first, 0) == .tryAgain)
        let second = try await pass(f, "a", "a.1", 1)
        #expect(try await tell(f, "a.1", second, 0) == .tryAgain)
        #expect(try await tell(f, "a.1", second, 0, 2) == .end)
        // Another process of that machine is another worker.
        #expect(try await f.queue.workers.join(worker: "b", lease: 60_000, about: [("host", "h"), ("pid", "8")]))
        #expect(try await tell(f, "a.1", second, 0, 2) == .leave)
    }

    @Test("A job that is split begins anew, and a batch that ends forgets")
    func ends() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [4])
        try await f.join("a")
        let claim = try await f.claim("a", 1)[0]
        _ = try await tell(f, "a", claim, 0)
        try await f.queue.jobs.split(worker: "a", claim: claim, into: claim.job.split(into: 2))
        #expect(try await f.redis("HEXISTS", f.keys.tries("b"), "\(claim.job.name)?").int == 0)
        let part = try await f.claim("a", 2)[0]
        _ = try await tell(f, "a", part, 0)
        #expect(try await f.findings("b") == [])
        _ = try await f.queue.batches.cancel(batch: "b")
        #expect(try await tell(f, "a", part, 0) == .leave)
        #expect(try await f.redis("EXISTS", f.keys.tries("b")).int == 0)
    }
}

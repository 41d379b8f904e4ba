import Redis
import Testing
import WebImage

@testable import Prefetch

@Suite("Workers in Redis", .timeLimit(.minutes(5)))
struct WorkerScriptTests {
    @Test("A name has one worker; after its end the name is free and begins anew")
    func join() async throws {
        let f = try await QueueFixture()
        #expect(try await f.queue.workers.join(worker: "w", lease: 60_000, about: [("host", "h"), ("pid", "1")]))
        #expect(try await f.queue.workers.join(worker: "w", lease: 60_000, about: [("pid", "2")]) == false)
        #expect(try await f.redis("HGET", f.keys.worker("w"), "pid").string == "1")
        try await f.queue.jobs.release(worker: "w", leaving: true)
        #expect(try await f.queue.workers.names() == [])
        #expect(try await f.redis("HGET", f.keys.worker("w"), "state").string == "left")
        #expect((86_399...86_400).contains(try await f.redis("TTL", f.keys.worker("w")).int ?? 0))
        #expect(try await f.queue.workers.join(worker: "w", lease: 60_000, about: []))
        let fields = try #require(try await f.redis("HGETALL", f.keys.worker("w")).fields)
        #expect(fields["state"]?.string == "running" && fields["ended"] == nil && fields["pid"] == nil)
        #expect(try await f.queue.views.snapshot().workers.keys.sorted() == ["w"])
        #expect(try await f.redis("TTL", f.keys.worker("w")).int == -1)
    }

    @Test("BEAT renews a lease also where it ran out, tells the state of batches, and knows who is gone")
    func beat() async throws {
        let f = try await QueueFixture()
        try await f.open("a")
        try await f.fill("b", sizes: [])
        try await f.join("w")
        try await f.expire("w")
        func beat(_ worker: String) async throws -> [String]? {
            try await f.queue.workers.beat(
                worker: worker, lease: 60_000, trouble: false,
                batches: ["a", "b", "c"].map { BatchIdentity(id: $0, nonce: $0) }, about: [("inflight", "3")]
            )?.batches.map(\.state)
        }
        #expect(try await beat("w") == ["running", "done", "gone"])
        #expect(try await f.queue.workers.reap() == .nobody)
        #expect(try await f.redis("HGET", f.keys.worker("w"), "inflight").string == "3")
        #expect(try await beat("x") == nil)
        #expect(try await f.redis("EXISTS", f.keys.worker("x"), f.keys.hold).int == 0)
        #expect(
            try await f.queue.workers.beat(worker: "w", lease: 60_000, trouble: false, batches: [], about: [])
                == QueueWorkers.WorkerSettings())
    }

    @Test("A worker that saw Redis stall holds reaping for two leases, once; a known death is reaped all the same")
    func hold() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1])
        try await f.join("w", "dead", "gone")
        _ = try await f.claim("dead", 1)
        _ = try await f.claim("gone", 1)
        try await f.expire("dead")
        _ = try await f.queue.workers.beat(worker: "w", lease: 50_000, trouble: true, batches: [], about: [])
        #expect((190_000...200_000).contains(try await f.redis("PTTL", f.keys.hold).int ?? 0))
        try await f.redis("PEXPIRE", f.keys.hold, "40000")
        _ = try await f.queue.workers.beat(worker: "w", lease: 50_000, trouble: true, batches: [], about: [])
        #expect((1...40_000).contains(try await f.redis("PTTL", f.keys.hold).int ?? 0))
        #expect(try await f.queue.workers.reap() == .nobody)
        #expect(try await f.queue.workers.reap(worker: "gone") == .reaped(worker: "gone", jobs: 1))
        try await f.redis("DEL", f.keys.hold)
        #expect(try await f.queue.workers.reap() == .reaped(worker: "dead", jobs: 1))
        #expect(try await f.queue.workers.reap() == .nobody)
        #expect(try await f.findings("b") == [])
    }

    @Test("A worker whose beats are always slow holds reaping for two leases of four: the dead are reaped in between")
    func holdEnds() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1])
        try await f.join("slow", "dead", "later")
        _ = try await f.claim("dead", 1)
        _ = try await f.claim("later", 1)
        let lease = 10_000
        /// Time goes by on the queue's clock, and the slow worker beats all the while.
        func pass(_ milliseconds: Int) async throws {
            for _ in 0..<10 {
                try await f.redis("HINCRBY", f.keys.clock, "ahead", String(milliseconds / 10))
                _ = try await f.queue.workers.beat(worker: "slow", lease: lease, trouble: true, batches: [], about: [])
            }
        }
        try await pass(0)
        try await f.expire("dead")
        try await pass(lease)
        #expect(try await f.queue.workers.reap() == .nobody)
        // Two leases are over: the next slow beat, which has come already, is no reason to wait for two more.
        try await pass(lease + 100)
        #expect(try await f.queue.workers.reap() == .reaped(worker: "dead", jobs: 1))
        try await f.expire("later")
        try await pass(2 * lease)
        #expect(try await f.queue.workers.reap() == .nobody)
        try await pass(2 * lease)
        #expect(try await f.queue.workers.reap() == .reaped(worker: "later", jobs: 1))
        #expect(try await f.findings("b") == [])
    }

    @Test("REAP gives jobs back to the front, counts a delivery for each, and the lost worker is told")
    func reap() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1, 1])
        try await f.join("w", "v")
        let jobs = try await f.claim("w", 1, count: 2).map(\.job)
        #expect(try await f.queue.workers.reap() == .nobody)
        try await f.expire("w")
        #expect(try await f.queue.workers.reap() == .reaped(worker: "w", jobs: 2))
        #expect(try await f.queue.workers.names() == ["v"])
        #expect(try await f.redis("HGET", f.keys.worker("w"), "state").string == "lost")
        #expect(try await f.redis("EXISTS", f.keys.owned(by: "w")).int == 0)
        #expect(try await f.queue.jobs.claim(worker: "w", sequence: 1, count: 2, lease: 60_000) == .lost)
        #expect(
            try await f.queue.workers.beat(worker: "w", lease: 60_000, trouble: false, batches: [], about: []) == nil)
        let claims = try await f.claim("v", 1, count: 3)
        #expect(Set(claims.prefix(2).map(\.job.name)) == Set(jobs.map(\.name)))
        #expect(claims.map(\.deliveries) == [1, 1, 0] && claims.map(\.marks) == [0, 0, 0])
        #expect(try await f.findings("b") == [])
    }

    @Test("A new outcome clears the deliveries of its job; a death without one adds up")
    func deliveries() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2])
        func die(_ worker: String, _ outcomes: [PrefetchOutcome?]) async throws -> Int {
            try await f.join(worker)
            let claim = try #require(try await f.claim(worker, 1).first)
            _ = try await f.queue.reports.send(
                [QueueFixture.report(claim.job, outcomes, isFinal: false)], worker: worker)
            #expect(try await f.queue.workers.reap(worker: worker) == .reaped(worker: worker, jobs: 1))
            return claim.deliveries
        }
        #expect(try await die("a", []) == 0)
        #expect(try await die("b", []) == 1)
        #expect(try await die("c", [.hit]) == 2)
        #expect(try await die("d", [.hit]) == 1)
        #expect(try await die("e", []) == 2)
        #expect(try await f.findings("b") == [])
    }

    @Test("Only a death under the mark counts as the marked job's")
    func marks() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1])
        func die(_ worker: String, mark: String?, unmark: Bool = false) async throws -> [Int] {
            try await f.join(worker)
            let claims = try await f.claim(worker, 1, count: 2).sorted { $0.job.base < $1.job.base }
            try await f.queue.jobs.mark(worker: worker, claim: mark)
            if unmark { try await f.queue.jobs.mark(worker: worker, claim: nil) }
            _ = try await f.queue.workers.reap(worker: worker)
            return claims.map(\.marks)
        }
        #expect(try await die("a", mark: "b:0:1@b") == [0, 0])
        #expect(try await die("b", mark: "b:0:1@b", unmark: true) == [1, 0])
        #expect(try await die("c", mark: "b:9:1") == [1, 0])
        #expect(try await die("d", mark: "b:1:1@b") == [1, 0])
        #expect(try await die("e", mark: nil) == [1, 1])
        try await f.join("f")
        let job = try #require(try await f.claim("f", 1, count: 2).first { $0.job.base == 0 }?.job)
        try await f.finish(job, "f", .poison)
        #expect(try await f.redis("HEXISTS", f.keys.tries("b"), "b:0:1!").int == 0)
        #expect(try await f.redis("HEXISTS", f.keys.tries("b"), "b:1:1!").int == 1)
        #expect(try await f.findings("b") == [])
    }

    @Test("REAP takes at most 64 jobs a call, and the next call continues")
    func reapLimit() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: Array(repeating: 1, count: 100))
        try await f.join("w")
        #expect(try await f.claim("w", 1, count: 100).count == 100)
        try await f.expire("w")
        #expect(try await f.queue.workers.reap() == .reaped(worker: "w", jobs: 64))
        #expect(try await f.findings("b") == [])
        #expect(try await f.queue.workers.names() == ["w"])
        #expect(try await f.queue.workers.reap() == .reaped(worker: "w", jobs: 36))
        #expect(try await f.queue.workers.reap() == .nobody)
        #expect(try await f.redis("LLEN", f.keys.jobs("b")).int == 100)
        #expect(try await f.redis("HLEN", f.keys.tries("b")).int == 100)
        #expect(try await f.findings("b") == [])
    }

    @Test("Who is half reaped and beats again goes on with what is left")
    func halfReaped() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1, 1])
        try await f.join("w")
        let claims = try await f.claim("w", 1, count: 3)
        try await f.expire("w")
        #expect(try await f.queue.workers.reap(most: 2) == .reaped(worker: "w", jobs: 2))
        #expect(
            try await f.queue.workers.beat(worker: "w", lease: 60_000, trouble: false, batches: [], about: []) != nil)
        #expect(try await f.claim("w", 1, count: 3).count == 1)
        for claim in claims { try await f.finish(claim.job, "w") }
        #expect(try await f.field("state", of: "b") == "done")
        #expect(try await f.findings("b") == [])
    }

    @Test("Jobs of a cancelled batch are dropped when their worker is reaped or releases them")
    func cancelled() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1, 1])
        try await f.join("w", "v")
        _ = try await f.claim("w", 1, count: 2)
        _ = try await f.claim("v", 1)
        _ = try await f.queue.batches.cancel(batch: "b")
        #expect(try await f.queue.workers.reap(worker: "w") == .reaped(worker: "w", jobs: 0))
        try await f.queue.jobs.release(worker: "v", leaving: true)
        #expect(
            try await f.redis("EXISTS", f.keys.jobs("b"), f.keys.tries("b"), f.keys.bell, f.keys.ready(.normal)).int
                == 0)
        #expect(try await f.findings("b") == [])
    }

    @Test("RELEASE gives jobs back without blame: named ones, or all of a worker that leaves")
    func release() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1, 1])
        try await f.join("w", "v")
        let jobs = try await f.claim("w", 1, count: 3).map(\.job)
        #expect(try await f.queue.jobs.release(worker: "w", jobs: [jobs[1].claimName, "b:9:9"], leaving: false) == 1)
        #expect(try await f.queue.jobs.release(worker: "w", jobs: [jobs[1].claimName], leaving: false) == 0)
        #expect(try await f.claim("v", 1).map(\.job) == [jobs[1]])
        #expect(try await f.findings("b") == [])
        #expect(try await f.queue.jobs.release(worker: "w", leaving: true) == 2)
        #expect(try await f.queue.jobs.release(worker: "w", leaving: true) == 0)
        #expect(try await f.queue.workers.names() == ["v"])
        let claims = try await f.claim("v", 2, count: 2)
        #expect(Set(claims.map(\.job.name)) == ["b:0:1", "b:2:1"] && claims.map(\.deliveries) == [0, 0])
        #expect(try await f.findings("b") == [])
    }
}

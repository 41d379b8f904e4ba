import Foundation
import Redis
import TestSupport
import Testing
import WebImage
import Threading

@testable import Prefetch

@Suite("The clock of Redis goes wrong", .timeLimit(.minutes(5)))
struct ClockTests {
    /// A queue on a Redis of its own, whose clock can be set wrong.
    private struct Bench {
        let folder = TemporaryDirectory()
        let redis: RedisServer
        let queue: PrefetchQueue

        init() async throws {
            let source = URL(filePath: #filePath).appending(path: "../../../ShiftedClock/shifted_clock.c").standardized
            let library = folder.path("shifted_clock.so")
            let compiler = try await ChildProcess(
                "/usr/bin/env", ["clang", "-std=c17", "-O1", "-shared", "-fPIC", "-o", library, source.path()])
            try #require(await compiler.wait() == .exited(0), "\(compiler.stderr)")
            redis = try await RedisServer(
                environment: ["LD_PRELOAD": library, "CLOCK_SHIFT": folder.path("shift")])
            queue = PrefetchQueue(connection: RedisConnection(try RedisConfiguration(url: redis.url), name: "test"))
        }

        /// Redis' clock is wrong by so many seconds from now on.
        func shift(_ seconds: Int) { folder.write(Array("\(seconds)\n".utf8), to: "shift") }

        func fill(_ id: String, fields: [(String, String)] = []) async throws {
            _ = try await queue.batches.open(id: id, nonce: id, exactly: true, fields: [("total", "1")] + fields)
            _ = try await queue.batches.push(
                batch: id, offset: 0, window: "all", count: 1,
                jobs: QueueFixture.jobs(id, sizes: [1]).map { $0.encoded() })
            _ = try await queue.batches.seal(batch: id, total: 1)
        }
    }

    @Test(
        "A step back of hours delays nothing by more than two leases: lease, hold, deadline, pause, rate, failed URL"
    )
    func back() async throws {
        let bench = try await Bench()
        let queue = bench.queue
        let lease = 1_000
        try await bench.fill("b")
        try await bench.fill("late", fields: [("limit", "2000")])
        #expect(try await queue.workers.join(worker: "dead", lease: lease, about: []))
        #expect(try await queue.workers.join(worker: "alive", lease: lease, about: []))
        _ = try await queue.jobs.claim(worker: "dead", sequence: 1, count: 1, lease: lease)
        _ = try await queue.workers.beat(worker: "alive", lease: lease, trouble: true, batches: [], about: [])
        let wish = HostSlotRequest(host: "h", count: 100, rate: 100)
        _ = try await queue.hosts.reserve([wish])
        let error = WebImageError(.timedOut, "no", isTransient: true)
        let now = MonotonicClock.now
        try await queue.hosts.note([
            HostReport(host: "h", state: .silent, until: now + 2, since: now, failures: 10, error: error)
        ])

        let began = ContinuousClock.now
        bench.shift(-7_200)
        // Nobody who lives is lost for it.
        _ = try await queue.workers.beat(worker: "alive", lease: lease, trouble: false, batches: [], about: [])
        let last = try await queue.workerRecords.all().compactMap(\.leaseLeft).max() ?? 0
        #expect(last <= 2 * lease)
        try await until {
            _ = try await queue.workers.beat(worker: "alive", lease: lease, trouble: false, batches: [], about: [])
            return try await queue.workers.reap() == .reaped(worker: "dead", jobs: 1)
        }
        try await until { try await queue.batches.status(of: "late")?.state == .cancelled }
        try await until { try await queue.hosts.reserve([wish])[0] != nil }
        try await until { try await queue.hosts.troubled().allSatisfy { $0.remaining <= 0 } }
        #expect(ContinuousClock.now - began < .milliseconds(2_000 + 2 * lease))
        #expect(try await queue.workers.names() == ["alive"])
        let status = try #require(try await queue.batches.status(of: "b"))
        #expect(status.elapsed < 30 && status.at >= status.created)
        #expect(
            try await queue.workers.beat(worker: "alive", lease: lease, trouble: false, batches: [], about: []) != nil)
    }

    @Test("A step forward, and the one back that corrects it, end leases early and delay nothing")
    func forward() async throws {
        let bench = try await Bench()
        let queue = bench.queue
        try await bench.fill("b")
        #expect(try await queue.workers.join(worker: "w", lease: 1_000, about: []))
        _ = try await queue.jobs.claim(worker: "w", sequence: 1, count: 1, lease: 1_000)
        bench.shift(7_200)
        // Its lease has run out, and its next beat renews it: nobody has taken its jobs.
        #expect(try await queue.workers.beat(worker: "w", lease: 1_000, trouble: true, batches: [], about: []) != nil)
        bench.shift(0)
        try await until { try await queue.workers.reap() == .reaped(worker: "w", jobs: 1) }
        #expect(try await queue.workers.names() == [])
    }

    @Test("A lease that ends later than any can is taken for one that has run out")
    func impossible() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1])
        try await f.join("w", "v")
        _ = try await f.claim("w", 1)
        #expect(try await f.queue.workers.reap() == .nobody)
        try await f.redis("ZINCRBY", f.keys.workers, "7200000", "w")
        #expect(try await f.queue.workers.reap() == .reaped(worker: "w", jobs: 1))
        #expect(try await f.queue.workers.reap() == .nobody)
    }
}

import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("Feeding a list", .timeLimit(.minutes(5)))
struct ListFeederTests {
    private let folder = TemporaryDirectory()

    private func list(_ count: Int, name: String = "list.txt") throws -> URLList {
        folder.write(Array((0..<count).map { "http://h/\($0)\n" }.joined().utf8), to: name)
        return try URLList(path: folder.path(name))
    }

    /// Claims and finishes whatever is there, until the batch is done.
    private func work(_ f: QueueFixture, worker: String) async throws -> [PrefetchJob] {
        var jobs: [PrefetchJob] = []
        var sequence = 0
        try await f.join(worker)
        while try await f.field("state", of: "b") == "running" {
            sequence += 1
            for claim in try await f.claim(worker, sequence, count: 3) {
                jobs.append(claim.job)
                try await f.finish(claim.job, worker)
            }
            await Task.yield()
        }
        return jobs
    }

    @Test(
        "A list becomes jobs of its size in its order",
        arguments: [
            (1000, nil, 16), (10, nil, 4), (3, nil, 4), (256, nil, 4), (257, nil, 5), (20_000, nil, 256), (10, 1, 1),
            (1000, 256, 256),
            (7, 3, 3),
        ])
    func jobs(count: Int, jobSize: Int?, size: Int) async throws {
        let f = try await QueueFixture()
        let list = try list(count)
        try await f.open(fields: [("total", String(count))])
        let feeder = ListFeeder(queue: f.queue, list: list, batch: "b", window: "all", jobSize: jobSize)
        let heard = Locked<[Int]>([])
        #expect(try await feeder.feed(pushed: { count in heard.withLock { $0.append(count) } }) == .sealed)
        #expect(heard.withLock { $0 }.last == count)
        #expect(try await f.findings("b") == [])
        let jobs = try await work(f, worker: "w")
        #expect(jobs.map(\.entries.count).dropLast().allSatisfy { $0 == size })
        let entries = (0..<count).map { PrefetchJob.Entry(line: $0 + 1, url: "http://h/\($0)") }
        #expect(jobs.flatMap(\.entries) == entries)
        #expect(try await f.findings("b") == [])
        // Again after the end: nothing to do.
        #expect(try await feeder.feed() == .closed("done"))
    }

    @Test("An empty list completes at once")
    func empty() async throws {
        let f = try await QueueFixture()
        try await f.open(fields: [("total", "0")])
        #expect(try await ListFeeder(queue: f.queue, list: try list(0), batch: "b").feed() == .sealed)
        #expect(try await f.field("state", of: "b") == "done")
    }

    @Test("The window bounds what waits in Redis while workers drain it, and a full one is told once a stop")
    func window() async throws {
        let f = try await QueueFixture()
        try await f.open(fields: [("total", "600")])
        let waits = Locked(0)
        let feeder = ListFeeder(queue: f.queue, list: try list(600), batch: "b", window: "2", jobSize: 1)
        let worker = Task { try await work(f, worker: "w") }
        #expect(try await feeder.feed(waiting: { _ in waits.withLock { $0 += 1 } }) == .sealed)
        #expect(try await worker.value.flatMap(\.entries).map(\.line) == Array(1...600))
        #expect(waits.withLock { $0 } > 0)
        #expect(try await f.findings("b") == [])
    }

    @Test("A feeder that was stopped is followed by another, and no URL is missing or doubled")
    func resume() async throws {
        let f = try await QueueFixture()
        let list = try list(500)
        try await f.open(fields: [("total", "500")])
        let (full, isFull) = AsyncStream.makeStream(of: Void.self)
        let first = Task {
            _ = await #expect {
                try await ListFeeder(queue: f.queue, list: list, batch: "b", window: "1", jobSize: 2).feed(
                    waiting: { _ in isFull.finish() })
            } throws: { ($0 as? PrefetchError)?.kind == .stopped }
        }
        for await _ in full {}
        first.cancel()
        _ = await first.value
        #expect(try await f.field("sealed", of: "b") == "0")
        let pushed = try #require(Int(try await f.field("pushed", of: "b") ?? ""))
        #expect((1..<500).contains(pushed))
        #expect(try await f.findings("b") == [])
        #expect(
            try await ListFeeder(queue: f.queue, list: list, batch: "b", window: "all", jobSize: 9).feed() == .sealed)
        let jobs = try await work(f, worker: "w")
        #expect(jobs.flatMap(\.entries).map(\.line) == Array(1...500))
        #expect(try await f.findings("b") == [])
    }

    @Test("Two feeders of one batch push every URL once")
    func twoFeeders() async throws {
        let f = try await QueueFixture()
        let list = try list(1000)
        try await f.open(fields: [("total", "1000")])
        async let one = ListFeeder(queue: f.queue, list: list, batch: "b", window: "all", jobSize: 1).feed()
        async let two = ListFeeder(queue: f.queue, list: list, batch: "b", window: "all", jobSize: 5).feed()
        #expect(try await [one, two] == [.sealed, .sealed])
        #expect(try await f.field("pushed", of: "b") == "1000")
        #expect(try await f.findings("b") == [])
        #expect(try await work(f, worker: "w").flatMap(\.entries).map(\.line).sorted() == Array(1...1000))
        #expect(try await f.findings("b") == [])
    }

    @Test("Where Redis lost its tail, the feeder goes back to what Redis has")
    func pushedSetBack() async throws {
        let f = try await QueueFixture()
        let list = try list(300)
        try await f.open(fields: [("total", "300")])
        let isSetBack = Locked(false)
        let feeder = ListFeeder(queue: f.queue, list: list, batch: "b", window: "70", jobSize: 1)
        let worker = Task {
            // At the full window Redis is as it was 20 jobs before.
            try await until { try await f.redis("LLEN", f.keys.jobs("b")).int ?? 0 >= 70 }
            try await f.queue.connection.command([
                "EVAL",
                """
                for _ = 1, 20 do redis.call('LPOP', KEYS[1]) end
                redis.call('HINCRBY', KEYS[2], 'pushed', -20)
                """, "2", RedisArgument(f.keys.jobs("b")), RedisArgument(f.keys.batch("b")),
            ])
            isSetBack.withLock { $0 = true }
            return try await work(f, worker: "w")
        }
        #expect(try await feeder.feed() == .sealed)
        #expect(isSetBack.withLock { $0 })
        #expect(try await worker.value.flatMap(\.entries).map(\.line).sorted() == Array(1...300))
        #expect(try await f.findings("b") == [])
    }

    @Test("A list that became shorter is not sealed", arguments: [2, 0])
    func changed(count: Int) async throws {
        let f = try await QueueFixture()
        let before = try list(100)
        try await f.open(fields: [("total", "100")])
        _ = try list(count)
        await #expect { try await ListFeeder(queue: f.queue, list: before, batch: "b").feed() } throws: { error in
            let error = error as? PrefetchError
            return error?.kind == .unreadableList && error?.hint.contains("cancel b") == true
        }
        #expect(try await f.field("sealed", of: "b") == "0")
    }

    @Test("Feeding ends where the batch was cancelled or is gone")
    func closed() async throws {
        let f = try await QueueFixture()
        let list = try list(10)
        #expect(try await ListFeeder(queue: f.queue, list: list, batch: "b").feed() == .closed("gone"))
        try await f.open(fields: [("total", "10")])
        _ = try await f.queue.batches.cancel(batch: "b")
        #expect(try await ListFeeder(queue: f.queue, list: list, batch: "b").feed() == .closed("cancelled"))
    }
}

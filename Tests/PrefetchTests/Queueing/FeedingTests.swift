import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("Feeding a batch", .timeLimit(.minutes(5)))
struct FeedingTests {
    @Test("OPEN numbers batches of the same name, and gives a repeated call the same id")
    func open() async throws {
        let f = try await QueueFixture()
        func open(_ nonce: String, exactly: Bool = false) async throws -> String? {
            try await f.queue.batches.open(id: "urls-1", nonce: nonce, exactly: exactly, fields: [("keep", "60")])
        }
        #expect(try await open("a") == "urls-1")
        #expect(try await open("b") == "urls-1.2")
        #expect(try await open("c") == "urls-1.3")
        #expect(try await open("b") == "urls-1.2")
        #expect(try await open("a", exactly: true) == "urls-1")
        #expect(try await open("d", exactly: true) == nil)
        #expect(try await f.queue.catalog.ids() == ["urls-1", "urls-1.2", "urls-1.3"])
        #expect(try await f.queue.catalog.running() == ["urls-1", "urls-1.2", "urls-1.3"])
        #expect(try await f.field("keep", of: "urls-1.2") == "60")
        #expect(try await f.findings("urls-1", "urls-1.2") == [])
    }

    @Test(
        "OPEN writes nothing where it meets a key of a wrong type, and makes the batch when that is mended",
        arguments: ["batches", "running", "deadlines", "slots", "ready:normal"])
    func openWritesAllOrNothing(name: String) async throws {
        let f = try await QueueFixture()
        func open(_ id: String) async throws -> QueueBatches.Opened? {
            try await f.queue.batches.open(
                id: id, nonce: id, exactly: true, slot: "s",
                fields: [
                    ("limit", "60000"), ("open", "1"), ("list", "/l"), ("total", "1"), ("hash", "h"),
                    ("host", "h"), ("keep", "60"),
                ])
        }
        func state() async throws -> [String: [UInt8]] {
            var state: [String: [UInt8]] = [:]
            let keys = try await f.redis("KEYS", f.keys.root + ":*").array ?? []
            for key in keys.compactMap(\.string) where key != f.keys.clock {
                state[key] = try await f.redis("DUMP", key).bytes
            }
            return state
        }
        #expect(try await open("old")?.id == "old")
        try await f.redis("RPUSH", f.keys.jobs("old"), "x")
        try await f.redis("HSET", f.keys.batch("old"), "ready", "1")
        let key = "\(f.keys.root):\(name)"
        let isThere = try await f.redis("EXISTS", key).int == 1
        if isThere { try await f.redis("RENAME", key, key + ":saved") }
        try await f.redis("SET", key, "x")
        let before = try await state()
        await #expect { try await open("new") } throws: { ($0 as? RedisError)?.replyCode == "WRONGTYPE" }
        #expect(try await state() == before)
        try await f.redis("DEL", key)
        if isThere { try await f.redis("RENAME", key + ":saved", key) }
        #expect(try await open("new") == QueueBatches.Opened(id: "new", replaced: "old"))
        #expect(try await f.field("state", of: "old") == "cancelled")
        #expect(try await Set(f.queue.catalog.ids()) == ["old", "new"])
    }

    @Test("PUSH takes jobs at its offset only, rings once, and a repeated push changes nothing")
    func push() async throws {
        let f = try await QueueFixture()
        try await f.open()
        #expect(try await f.push(sizes: [2, 3]) == .pushed(5))
        #expect(try await f.push(sizes: [2, 3]) == .at(5))
        #expect(try await f.push(offset: 7, sizes: [1]) == .at(5))
        #expect(try await f.push(offset: 5, sizes: [1]) == .pushed(6))
        #expect(try await f.redis("LLEN", f.keys.jobs("b")).int == 3)
        #expect(try await f.redis("LRANGE", f.keys.ready(.normal), "0", "-1").array?.compactMap(\.string) == ["b"])
        #expect(try await f.redis("LLEN", f.keys.bell).int == 1)
        #expect(try await f.findings("b") == [])
    }

    @Test("PUSH stops at the window: a number, or 1,024 shared by the running batches and at least 64")
    func window() async throws {
        let f = try await QueueFixture()
        try await f.open()
        #expect(try await f.push(sizes: [1, 1], window: "2") == .pushed(2))
        #expect(try await f.push(offset: 2, sizes: [1], window: "2") == .full)
        #expect(try await f.push(offset: 2, sizes: [1], window: "3") == .pushed(3))
        #expect(try await f.push(offset: 3, sizes: [1], window: "auto") == .pushed(4))
        for index in 0..<31 { try await f.open("other\(index)") }
        #expect(try await f.push(offset: 4, sizes: Array(repeating: 1, count: 59), window: "auto") == .pushed(63))
        #expect(try await f.push(offset: 63, sizes: [1], window: "auto") == .pushed(64))
        #expect(try await f.push(offset: 64, sizes: [1], window: "auto") == .full)
        #expect(try await f.push(offset: 64, sizes: [1], window: "all") == .pushed(65))
        #expect(try await f.findings("b") == [])
    }

    @Test("PUSH is told why a batch takes no more")
    func closed() async throws {
        let f = try await QueueFixture()
        #expect(try await f.push("none", sizes: [1]) == .closed("gone"))
        try await f.fill(sizes: [1])
        #expect(try await f.push(sizes: [1]) == .at(1))
        #expect(try await f.push(offset: 1, sizes: [1]) == .closed("sealed"))
        #expect(try await f.queue.batches.cancel(batch: "b") == "running")
        #expect(try await f.push(offset: 1, sizes: [1]) == .closed("cancelled"))
        #expect(try await f.redis("EXISTS", f.keys.jobs("b"), f.keys.bell).int == 0)
        #expect(try await f.findings("b") == [])
    }

    @Test("SEAL wants the pushed number, may be repeated, and completes an empty batch")
    func seal() async throws {
        let f = try await QueueFixture()
        #expect(try await f.queue.batches.seal(batch: "b", total: 0) == .closed("gone"))
        try await f.open()
        try await f.push(sizes: [2])
        #expect(try await f.queue.batches.seal(batch: "b", total: 3) == .at(2))
        #expect(try await f.field("sealed", of: "b") == "0")
        #expect(try await f.queue.batches.seal(batch: "b", total: 2) == .pushed(2))
        #expect(try await f.queue.batches.seal(batch: "b", total: 2) == .pushed(2))
        #expect(try await f.field("state", of: "b") == "running")
        try await f.open("empty")
        #expect(try await f.queue.batches.seal(batch: "empty", total: 0) == .pushed(0))
        #expect(try await f.field("state", of: "empty") == "done")
        let ended = try await f.field("ended", of: "empty")
        #expect(try await f.queue.batches.seal(batch: "empty", total: 0) == .pushed(0))
        #expect(try await f.field("ended", of: "empty") == ended)
        try await f.open("cancelled")
        _ = try await f.queue.batches.cancel(batch: "cancelled")
        #expect(try await f.queue.batches.seal(batch: "cancelled", total: 0) == .closed("cancelled"))
        #expect(try await f.findings("b", "empty", "cancelled") == [])
    }

    @Test("A batch whose URLs all ended before SEAL completes with it")
    func finishedBeforeSeal() async throws {
        let f = try await QueueFixture()
        try await f.open()
        try await f.push(sizes: [2])
        try await f.join("w")
        let claim = try #require(try await f.claim("w", 1).first)
        #expect(try await f.finish(claim.job, "w") == 2)
        #expect(try await f.field("state", of: "b") == "running")
        #expect(try await f.findings("b") == [])
        _ = try await f.queue.batches.seal(batch: "b", total: 2)
        #expect(try await f.field("state", of: "b") == "done")
        #expect(try await f.findings("b") == [])
    }

    @Test("CANCEL ends a batch once, its open URLs read as cancelled, and no late report changes that")
    func cancel() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2, 2], fields: [("total", "4")])
        try await f.join("w")
        let claim = try #require(try await f.claim("w", 1).first)
        _ = try await f.queue.reports.send([QueueFixture.report(claim.job, [.hit], isFinal: false)], worker: "w")
        #expect(try await f.queue.batches.cancel(batch: "b") == "running")
        #expect(try await f.queue.batches.cancel(batch: "b") == "cancelled")
        #expect(try await f.queue.batches.cancel(batch: "none") == nil)
        #expect(try await f.finish(claim.job, "w") == nil)
        #expect(try await f.claim("w", 2).isEmpty)
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.state == .cancelled && status.counts.finished == 4 && status.counts[.cancelled] == 3)
        #expect(status.didFinish == (1, 3))
        #expect(try await f.redis("EXISTS", f.keys.jobs("b"), f.keys.tries("b"), f.keys.bell).int == 0)
        #expect(try await f.findings("b") == [])
    }

    @Test("Results leave Redis with the batch, after its time to keep", arguments: ["done", "cancelled"])
    func keep(ending: String) async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1], fields: [("keep", "600")])
        try await f.join("w")
        let claims = try await f.claim("w", 1, count: 2)
        try await f.finish(claims[0].job, "w", .badImage)
        try await f.queue.reports.noteRefusal(batch: "b", host: "10.0.0.1", message: "private")
        #expect(try await f.redis("TTL", f.keys.batch("b")).int == -1)
        if ending == "done" {
            try await f.finish(claims[1].job, "w")
        } else {
            _ = try await f.queue.batches.cancel(batch: "b")
        }
        let kept = try await f.redis("KEYS", f.keys.batch("b") + "*").array?.compactMap(\.string).sorted() ?? []
        #expect(
            kept
                == [
                    f.keys.batch("b"), f.keys.outcomes("b"), f.keys.records("b"), f.keys.refused("b"),
                    f.keys.skipped("b"), f.keys.workerCounts("b"),
                ].sorted())
        for key in kept { #expect((599...600).contains(try await f.redis("TTL", key).int ?? 0), "\(key)") }
        try await f.redis("DEL", f.keys.batch("b"))
        #expect(try await f.queue.catalog.ids() == [])
    }

    @Test("A full Redis refuses PUSH and OPEN, and still drains")
    func full() async throws {
        let server = try await RedisServer()
        let connection = RedisConnection(try RedisConfiguration(url: server.url), name: "test")
        let queue = PrefetchQueue(connection: connection, waitLimit: .zero)
        let jobs = QueueFixture.jobs("b", sizes: [2, 2])
        _ = try await queue.batches.open(id: "b", nonce: "1", exactly: true, fields: [("total", "4")])
        _ = try await queue.batches.push(batch: "b", offset: 0, window: "all", count: 2, jobs: [jobs[0].encoded()])
        try await connection.command(["CONFIG", "SET", "maxmemory", "1"])
        await #expect {
            try await queue.batches.push(batch: "b", offset: 2, window: "all", count: 2, jobs: [jobs[1].encoded()])
        } throws: {
            ($0 as? RedisError)?.code == .outOfMemory
        }
        #expect(try await queue.workers.join(worker: "w", lease: 60_000, about: []))
        #expect(
            try await queue.workers.beat(
                worker: "w", lease: 60_000, trouble: false, batches: [BatchIdentity(id: "b", nonce: "1")], about: [])?
                .batches
                == [.init(state: "running")])
        guard case .claimed(let claims) = try await queue.jobs.claim(worker: "w", sequence: 1, count: 1, lease: 60_000)
        else {
            Issue.record("lost")
            return
        }
        #expect(claims.map(\.job) == [jobs[0]])
        let report = QueueFixture.report(jobs[0], [.downloaded, .badImage], nonce: "1")
        _ = try await queue.reports.send([report], worker: "w")
        #expect(try await queue.batches.status(of: "b")?.counts.finished == 2)
        #expect(try await BatchCheck(queue: queue, batch: "b").run() == [])
    }
}

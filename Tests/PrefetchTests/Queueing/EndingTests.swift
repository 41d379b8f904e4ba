import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Deadlines and shares in Redis", .timeLimit(.minutes(5)))
struct EndingTests {
    /// The deadline of a batch has passed, in both places that have it.
    private func pass(_ f: QueueFixture, _ batch: String = "b") async throws {
        try await f.redis("HSET", f.keys.batch(batch), "deadline", "1")
        try await f.redis("ZADD", f.keys.deadlines, "XX", "1", batch)
    }

    @Test("OPEN sets the deadline by the clock of Redis, once, and nothing ends before it")
    func set() async throws {
        let f = try await QueueFixture()
        for _ in 0..<2 { try await f.open(fields: [("limit", "600000"), ("total", "1")]) }
        let created = try #require(Int(try await f.field("created", of: "b") ?? ""))
        #expect(try await f.field("deadline", of: "b") == String(created + 600_000))
        #expect(try await f.redis("ZSCORE", f.keys.deadlines, "b").string == String(created + 600_000))
        try await f.queue.batches.endDue()
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.state == .running && status.deadline == created + 600_000)
        #expect(try await f.findings("b") == [])
    }

    @Test(
        "Whoever looks at the queue ends a batch whose deadline has passed, once, as a cancel does",
        arguments: ["CLAIM", "BEAT", "PUSH", "DUE", "status"])
    func due(by script: String) async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 2], fields: [("limit", "600000"), ("total", "3"), ("keep", "600")])
        try await f.fill("other", sizes: [1], fields: [("limit", "600000"), ("total", "1")])
        try await f.join("w", "v")
        let job = try await f.claim("w", 1)[0].job
        try await f.finish(job, "w")
        let second = try await f.claim("v", 1, count: 2).map(\.job).first { $0.batch == "b" }
        try await pass(f)
        func read() async throws {
            switch script {
            case "CLAIM": _ = try await f.claim("w", 7)
            case "BEAT":
                let settings = try await f.queue.workers.beat(
                    worker: "w", lease: 60_000, trouble: false,
                    batches: ["b", "other"].map { BatchIdentity(id: $0, nonce: $0) }, about: [])
                #expect(settings?.batches.map(\.state) == ["cancelled", "running"])
            case "PUSH": #expect(try await f.push(offset: 3, sizes: [1]) == .closed("cancelled"))
            case "DUE": try await f.queue.batches.endDue()
            default: _ = try await f.queue.batches.statuses(of: ["other", "b"])
            }
        }
        try await read()
        let ended = try await f.field("ended", of: "b")
        #expect(ended != nil)
        try await read()
        #expect(try await f.field("ended", of: "b") == ended)
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.state == .cancelled && status.endedBy == .deadline)
        #expect(status.counts.finished == 3 && status.counts[.cancelled] == 3 - job.entries.count)
        #expect(try await f.redis("ZRANGE", f.keys.deadlines, "0", "-1").array?.compactMap(\.string) == ["other"])
        // A late report changes nothing.
        if let second { #expect(try await f.finish(second, "v") == nil) }
        #expect(try await f.queue.batches.status(of: "other")?.state == .running)
        #expect((599...600).contains(try await f.redis("TTL", f.keys.batch("b")).int ?? 0))
        #expect(try await f.findings("b", "other") == [])
    }

    @Test("A deadline goes when its batch ends, whichever way", arguments: ["done", "cancelled", "removed", "deleted"])
    func cleared(ending: String) async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1], fields: [("limit", "600000"), ("total", "1")])
        try await f.join("w")
        switch ending {
        case "done": try await f.finish(try await f.claim("w", 1)[0].job, "w")
        case "cancelled": _ = try await f.queue.batches.cancel(batch: "b")
        case "removed":
            _ = try await f.queue.batches.cancel(batch: "b")
            try await f.redis("ZADD", f.keys.deadlines, "1", "b")
            #expect(try await f.queue.batches.remove(batch: "b") == .removed)
        default:
            try await f.redis("DEL", f.keys.batch("b"))
            try await f.redis("ZADD", f.keys.deadlines, "XX", "1", "b")
            try await f.queue.batches.endDue()
            #expect(try await f.redis("EXISTS", f.keys.batch("b")).int == 0)
        }
        #expect(try await f.redis("EXISTS", f.keys.deadlines).int == 0)
        if ending == "done" { #expect(try await f.queue.batches.status(of: "b")?.endedBy == nil) }
    }

    @Test("Many that are due at once are all ended by those who read")
    func many() async throws {
        let f = try await QueueFixture()
        var ids: [String] = []
        for index in 0..<40 {
            ids.append(try await f.open("b\(index)", fields: [("limit", "600000"), ("total", "1")]))
            try await pass(f, "b\(index)")
        }
        #expect(try await f.queue.batches.statuses(of: ids).allSatisfy { $0.endedBy == .deadline })
        #expect(try await f.queue.catalog.running() == [])
    }

    @Test(
        "--finish-at ends a sealed batch with the URL that reaches it, and no other",
        arguments: [("50%", 10, 5), ("99.9%", 1000, 999), ("0.1%", 10, 1), ("7", 10, 7), ("33.4%", 9, 4), ("1%", 3, 1)])
    func share(mark: String, total: Int, wanted: Int) async throws {
        let f = try await QueueFixture()
        try await f.join("w")
        try await f.open(fields: [("finish_at", mark), ("total", String(total))])
        try await f.push(sizes: Array(repeating: 1, count: total))
        let jobs = try await f.claim("w", 1, count: total).map(\.job)
        // Before the batch is sealed nobody knows what its total will be.
        for job in jobs.prefix(wanted - 1) { try await f.finish(job, "w", .hit) }
        _ = try await f.queue.batches.seal(batch: "b", total: total)
        #expect(try await f.field("state", of: "b") == "running")
        #expect(try await f.finish(jobs[wanted - 1], "w", .badImage) == 1)
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.state == .cancelled && status.endedBy == .finishAt && status.finishAt == mark)
        #expect(status.counts[.cancelled] == total - wanted && status.counts.finished == total)
        let ended = try await f.field("ended", of: "b")
        #expect(try await f.finish(jobs[wanted - 1], "w", .badImage) == nil)
        if wanted < total { #expect(try await f.finish(jobs[wanted], "w") == nil) }
        #expect(try await f.field("ended", of: "b") == ended)
        #expect(try await f.findings("b") == [])
    }

    @Test(
        "--max-failures cancels a batch with the first skipped URL too many, sealed or not",
        arguments: [("2", 10, 3), ("0", 4, 1), ("5%", 1_100, 55)], [true, false])
    func tooManyFailures(_ row: (limit: String, total: Int, last: Int), isSealed: Bool) async throws {
        let f = try await QueueFixture()
        try await f.join("w")
        try await f.open(fields: [("max_failures", row.limit), ("total", String(row.total))])
        try await f.push(sizes: Array(repeating: 1, count: row.total))
        if isSealed { _ = try await f.queue.batches.seal(batch: "b", total: row.total) }
        let jobs = try await f.claim("w", 1, count: row.total).map(\.job)
        // A share counts from 1,000 ended URLs on: 1,045 images, and the 55th failure is one of 1,100.
        let images = row.limit == "5%" ? 1_044 : 1
        // What a filter does not take is no failure.
        let filtered = min(images, 3) - 1
        for job in jobs.prefix(images - filtered) { try await f.finish(job, "w", .hit) }
        for job in jobs.prefix(images).suffix(filtered) { try await f.finish(job, "w", .filtered) }
        for job in jobs.dropFirst(images).prefix(row.last - 1) { try await f.finish(job, "w", .httpError) }
        #expect(try await f.field("state", of: "b") == "running")
        let last = jobs[images + row.last - 1]
        try await f.finish(last, "w", .timeout)
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.state == .cancelled && status.endedBy == .maxFailures && status.maxFailures == row.limit)
        #expect(status.counts[.httpError] + status.counts[.timeout] == row.last)
        #expect(status.counts.finished == row.total)
        // A second report of the same job changes nothing.
        let ended = try await f.field("ended", of: "b")
        #expect(try await f.finish(last, "w", .timeout) == nil)
        #expect(try await f.field("ended", of: "b") == ended)
        #expect(try await f.findings("b") == [])
    }

    @Test("A share of failures says nothing before 1,000 URLs have ended, and a batch that is done is done")
    func fewFailures() async throws {
        let f = try await QueueFixture()
        try await f.join("w")
        try await f.open(fields: [("max_failures", "5%"), ("total", "20")])
        try await f.push(sizes: Array(repeating: 1, count: 20))
        _ = try await f.queue.batches.seal(batch: "b", total: 20)
        for job in try await f.claim("w", 1, count: 20).map(\.job) { try await f.finish(job, "w", .httpError) }
        #expect(try await f.queue.batches.status(of: "b")?.state == .done)
    }

    @Test("A share is decided with the seal where it was reached before, and all of it is done, not cancelled")
    func atTheSeal() async throws {
        let f = try await QueueFixture()
        try await f.join("w")
        for (id, finishes) in [("some", 3), ("all", 4)] {
            try await f.open(id, fields: [("finish_at", "75%"), ("total", "4")])
            try await f.push(id, sizes: [1, 1, 1, 1])
            for job in try await f.claim("w", id == "some" ? 1 : 2, count: 4).map(\.job).prefix(finishes) {
                try await f.finish(job, "w")
            }
            #expect(try await f.field("state", of: id) == "running")
            for _ in 0..<2 { #expect(try await f.queue.batches.seal(batch: id, total: 4) == .pushed(4)) }
        }
        #expect(try await f.queue.batches.status(of: "some")?.endedBy == .finishAt)
        #expect(try await f.queue.batches.status(of: "all")?.state == .done)
        #expect(try await f.findings("some", "all") == [])
    }

    @Test("Of an open batch the share counts from its seal on")
    func openShare() async throws {
        let f = try await QueueFixture()
        try await f.join("w")
        try await f.open(fields: [("open", "1"), ("total", "0"), ("list", "/l"), ("hash", ""), ("finish_at", "50%")])
        let jobs = QueueFixture.jobs("b", sizes: [1, 1, 1, 1])
        _ = try await f.queue.batches.push(
            batch: "b", offset: 0, window: "all", count: 4, jobs: jobs.map { $0.encoded() })
        for job in try await f.claim("w", 1, count: 4).map(\.job).prefix(3) { try await f.finish(job, "w") }
        let before = try #require(try await f.queue.batches.status(of: "b"))
        #expect(before.state == .running && before.isOpen && before.total == 4 && !before.isSealed)
        for _ in 0..<2 { #expect(try await f.queue.batches.seal(batch: "b", total: 4, hash: "aa") == .pushed(4)) }
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(!status.isOpen && status.isSealed && status.listHash == "aa" && status.total == 4)
        #expect(status.endedBy == .finishAt && status.counts[.cancelled] == 1)
        #expect(try await f.findings("b") == [])
    }

    @Test("A deadline ends who feeds a Redis that is full and that nobody drains")
    func full() async throws {
        let server = try await RedisServer()
        let connection = RedisConnection(try RedisConfiguration(url: server.url), name: "test")
        let queue = PrefetchQueue(connection: connection)
        let folder = TemporaryDirectory()
        folder.write(Array((0..<10).map { "http://h/\($0)\n" }.joined().utf8), to: "list")
        var batch = NewBatch(list: try URLList(path: folder.path("list")))
        batch.settings.turn.name = "b"
        batch.settings.turn.deadline = .milliseconds(300)
        _ = try await batch.open(in: queue)
        try await connection.command(["CONFIG", "SET", "maxmemory", "1"])
        let feeder = ListFeeder(queue: queue, list: try URLList(path: folder.path("list")), batch: "b")
        #expect(try await feeder.feed() == .closed("cancelled"))
        #expect(try await queue.batches.status(of: "b")?.endedBy == .deadline)
    }

    @Test("Who ended a batch is told: a hand, or the next one of its slot")
    func others() async throws {
        let f = try await QueueFixture()
        _ = try await f.queue.batches.open(id: "a", nonce: "a", exactly: true, slot: "s", fields: [("total", "1")])
        _ = try await f.queue.batches.open(id: "b", nonce: "b", exactly: true, slot: "s", fields: [("total", "1")])
        #expect(try await f.queue.batches.status(of: "a")?.endedBy == .slot)
        #expect(try await f.queue.batches.status(of: "b")?.endedBy == nil)
        for _ in 0..<2 { _ = try await f.queue.batches.cancel(batch: "b") }
        #expect(try await f.queue.batches.status(of: "b")?.endedBy == .hand)
        #expect(try await f.queue.batches.status(of: "a")?.endedBy == .slot)
    }
}

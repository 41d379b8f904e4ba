import Origin
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("Reports that Redis does not take", .timeLimit(.minutes(5)))
struct RefusedReportTests {
    private let picture = GeneratedImage.png(seed: 4, width: 12, height: 12)

    @Test(
        "A report that is refused for a reason nobody foresaw is sent again with growing pauses, and that is said once")
    func unforeseen() async throws {
        let fixture = try await WorkerFixture()
        let body = picture
        fixture.origin.setFallback { _ in OriginResponse(body: body) }
        let queue = try fixture.queue()
        let id = try await fixture.submit((0..<3).map { fixture.origin.url("/\($0)") }, to: queue, jobSize: 3)
        let proxy = FaultProxy(target: fixture.redis.socketPath)
        // Only a report names the job without its batch's nonce.
        proxy.arm(.answer(containing: "\(id):0:3\r\n", reply: "-ERR upstream failure\r\n"), times: 2)
        let warningLog = Locked<[String]>([])
        let worker = try fixture.worker(at: proxy.url) {
            $0.onEvent = { event in
                if case .warning(let text) = event { warningLog.withLock { $0.append(text) } }
            }
        }
        let began = ContinuousClock.now
        let counts = try await worker.run()
        #expect(counts[.downloaded] == 3)
        #expect(proxy.triggered == 2)
        #expect(ContinuousClock.now - began > .milliseconds(2_900))
        let said = warningLog.withLock { $0 }
        #expect(said.count == 1 && said[0].contains("refuses reports of \(id)") && said[0].contains("upstream failure"))
        let status = try #require(try await queue.batches.status(of: id))
        #expect(status.state == .done && status.counts[.downloaded] == 3)
        #expect(try await BatchCheck(queue: queue, batch: id).run() == [])
        #expect((0..<3).allSatisfy { fixture.origin.requestCount("/\($0)") == 1 })
    }

    @Test("A batch with a key of a wrong type keeps what is known of it until that is gone, and others go on")
    func wrongType() async throws {
        let fixture = try await WorkerFixture()
        let body = picture
        fixture.origin.setFallback { _ in OriginResponse(body: body) }
        fixture.origin.route("/held", OriginResponse(body: body, fault: .stallBeforeHeader))
        let queue = try fixture.queue()
        let broken = try await fixture.submit(
            ["/held", "/1", "/2"].map { fixture.origin.url($0) }, to: queue, jobSize: 3)
        let worker = try fixture.worker { $0.burst = false }
        let run = Task { try await worker.run() }
        await fixture.origin.waitForRequests(1, to: "/held")
        try await queue.connection.command(["DEL", RedisArgument(queue.keys.workerCounts(broken))])
        try await queue.connection.command(["SET", RedisArgument(queue.keys.workerCounts(broken)), "x"])
        fixture.origin.release("/held")
        let other = try await fixture.submit((3..<6).map { fixture.origin.url("/\($0)") }, to: queue, jobSize: 1)
        try await until { try await queue.batches.status(of: other)?.state == .done }
        let field = [RedisArgument("HGET"), RedisArgument(queue.keys.batch(broken)), "broken"]
        try await until { try await queue.connection.command(field).string?.hasPrefix("WRONGTYPE") == true }
        // What is kept of it is in the worker's record, and in nothing else once it was taken.
        func unreported() async throws -> Int? {
            try await queue.views.snapshot().workers.values.first?.report.unreported
        }
        try await until { try await unreported() == 3 }

        try await queue.connection.command(["DEL", RedisArgument(queue.keys.workerCounts(broken))])
        try await until { try await queue.batches.status(of: broken)?.state == .done }
        #expect(try await queue.batches.status(of: broken)?.counts[.downloaded] == 3)
        #expect(try await BatchCheck(queue: queue, batch: broken).run() == [])
        #expect(fixture.origin.requestCount() == 6)
        try await until { try await unreported() == 0 }
        worker.drain()
        _ = try await run.value
    }

    @Test("The blacklist may be broken: the outcomes count all the same")
    func brokenList() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1])
        try await f.join("w")
        try await f.redis("SET", f.keys.failed, "x")
        let job = try await f.claim("w", 1)[0].job
        let report = QueueFixture.report(job, [.httpError]) { $0.list = "http://h/b/0" }
        #expect(try await f.queue.reports.send([report], worker: "w")[0].counted?.count == 1)
        #expect(try await f.field("state", of: "b") == "done")
    }

    @Test("A report of which nothing can be counted writes nothing at all", arguments: ["w", "skipped", "tries"])
    func wholeOrNothing(key: String) async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1])
        try await f.join("w")
        let job = try await f.claim("w", 1)[0].job
        try await f.redis("SET", "\(f.keys.batch("b")):\(key)", "x")
        let report = QueueFixture.report(job, [.httpError])
        #expect(try await f.queue.reports.send([report], worker: "w")[0].counted == nil)
        #expect(try await f.redis("GET", f.keys.outcomes("b")).isNull)
        #expect(try await f.field("finished", of: "b") == "0")
        try await f.redis("DEL", "\(f.keys.batch("b")):\(key)")
        #expect(try await f.queue.reports.send([report], worker: "w")[0].counted?.count == 1)
        #expect(try await f.field("state", of: "b") == "done")
    }

    @Test(
        "A batch whose end fails at a broken key ends once that is mended, by its deadline or by the same report again")
    func endsLater() async throws {
        let f = try await QueueFixture()
        try await f.open("late", fields: [("limit", "60000")])
        try await f.fill(sizes: [1])
        try await f.join("w")
        let job = try await f.claim("w", 1)[0].job
        // The only job of `late` makes it ready, so its end has to take it out of the list.
        try await f.redis("RPUSH", f.keys.jobs("late"), "x")
        try await f.redis("HSET", f.keys.batch("late"), "ready", "1")
        try await f.redis("HSET", f.keys.batch("b"), "ready", "1")
        try await f.redis("DEL", f.keys.ready(.normal))
        try await f.redis("SET", f.keys.ready(.normal), "x")
        try await f.redis("ZADD", f.keys.deadlines, "XX", "1", "late")
        try await f.queue.batches.endDue()
        #expect(try await f.field("state", of: "late") == "running")
        let report = QueueFixture.report(job, [.hit])
        #expect(try await f.queue.reports.send([report], worker: "w")[0].counted == nil)
        try await f.redis("DEL", f.keys.ready(.normal))
        #expect(try await f.queue.reports.send([report], worker: "w")[0].counted?.isEmpty == true)
        #expect(try await f.field("state", of: "b") == "done")
        try await until {
            try await f.queue.batches.endDue()
            return try await f.field("state", of: "late") == "cancelled"
        }
    }

    @Test("A heartbeat tells of all batches, also where the hash of one is none")
    func brokenHash() async throws {
        let f = try await QueueFixture()
        try await f.open("a")
        try await f.open("b")
        try await f.join("w")
        try await f.redis("DEL", f.keys.batch("a"))
        try await f.redis("SET", f.keys.batch("a"), "x")
        _ = try await f.queue.batches.cancel(batch: "b")
        let batches = ["a", "b"].map { BatchIdentity(id: $0, nonce: $0) }
        let settings = try await f.queue.workers.beat(
            worker: "w", lease: 60_000, trouble: false, batches: batches, about: [])
        #expect(settings?.batches.map(\.state) == ["running", "cancelled"])
    }

    @Test("A claim that its worker names at no heartbeat is found by the check, and goes back with the second one")
    func unknownClaim() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1, 1])
        try await f.join("w", "v")
        let claims = try await f.claim("w", 1, count: 2)
        func beat(_ sequence: Int, _ names: [String]) async throws {
            let known = QueueWorkers.KnownClaims(sequence: sequence, names: names)
            let settings = try await f.queue.workers.beat(
                worker: "w", lease: 60_000, trouble: false, batches: [], claims: known, about: [])
            #expect(settings != nil)
        }
        // The reply to the claim is on its way.
        for _ in 0..<3 { try await beat(0, []) }
        #expect(try await f.findings("b") == [])
        try await beat(1, [claims[0].name])
        #expect(try await f.findings("b") == ["I4 w does not know of 1 claims that it has, the first is b:1:1@b"])
        // Claims that gave nothing came behind it.
        try await beat(1, claims.map(\.name))
        try await beat(4, [claims[0].name])
        #expect(try await f.findings("b") == ["I4 w does not know of 1 claims that it has, the first is b:1:1@b"])
        // It was a mistake.
        try await beat(1, claims.map(\.name))
        #expect(try await f.findings("b") == [])
        try await beat(1, [claims[0].name])
        try await beat(1, [claims[0].name])
        #expect(try await f.findings("b") == [])
        #expect(try await f.claim("v", 1, count: 3).map(\.job.name) == ["b:1:1", "b:2:1"])
        // One that says nothing of what it has is not held to it.
        for _ in 0..<2 {
            _ = try await f.queue.workers.beat(worker: "w", lease: 60_000, trouble: false, batches: [], about: [])
        }
        #expect(try await f.redis("HEXISTS", f.keys.owned(by: "w"), claims[0].name).int == 1)
        #expect(try await f.findings("b") == [])
    }
}

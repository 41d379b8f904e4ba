import Glibc
import Origin
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("Workers and a Redis that forgets", .timeLimit(.minutes(5)))
struct ForgetfulRedisTests {
    private let picture = GeneratedImage.png(seed: 4, width: 12, height: 12)

    @Test("A job whose last report Redis has forgotten is done again, while its worker lives on")
    func forgottenReport() async throws {
        let fixture = try await WorkerFixture(appendOnly: true)
        let response = OriginResponse(body: picture, delay: 1)
        fixture.origin.setFallback { _ in response }
        let queue = try fixture.queue()
        let id = try await fixture.submit((0..<3).map { fixture.origin.url("/\($0).png") }, to: queue, jobSize: 3)
        let worker = try fixture.worker { $0.burst = false }
        let run = Task { try await worker.run() }
        // The worker has the job, and Redis knows it: so far goes what Redis will remember.
        await fixture.origin.waitForRequests(3)
        let file = "appendonlydir/appendonly.aof.1.incr.aof"
        let remembered = try #require(fixture.redis.directory.read(file)?.count)
        try #require(try await queue.batches.status(of: id)?.counts.finished == 0)
        try await until { try await queue.batches.status(of: id)?.state == .done }
        // The worker knows it too; otherwise it would send the report again.
        let name = worker.context.registration.name
        try await until { worker.context.jobs.kept(by: name).isEmpty }

        await fixture.redis.kill9()
        #expect(truncate(fixture.redis.directory.path(file), off_t(remembered)) == 0)
        try await fixture.redis.start()
        try await until { try await queue.batches.status(of: id)?.state == .done }
        #expect(try await queue.batches.status(of: id)?.counts[.hit] == 3)
        #expect(try await BatchCheck(queue: queue, batch: id).run() == [])
        worker.drain()
        _ = try await run.value
    }

    @Test("A batch that is there again under its old name is worked on by those who knew it cancelled")
    func sameName() async throws {
        let fixture = try await WorkerFixture()
        let body = picture
        fixture.origin.setFallback { _ in OriginResponse(body: body) }
        fixture.origin.route("/held", OriginResponse(fault: .stallBeforeHeader))
        let queue = try fixture.queue()
        func open(_ urls: [String], nonce: String) async throws {
            fixture.folder.write(Array((urls.joined(separator: "\n") + "\n").utf8), to: nonce + ".txt")
            let list = try URLList(path: fixture.folder.path(nonce + ".txt"))
            let id = try await queue.batches.open(
                id: "same", nonce: nonce, exactly: true, fields: [("total", String(list.total))])
            #expect(id == "same")
            #expect(try await ListFeeder(queue: queue, list: list, batch: "same").feed() == .sealed)
        }
        try await open([fixture.origin.url("/held")], nonce: "first")
        let worker = try fixture.worker { $0.burst = false }
        let run = Task { try await worker.run() }
        await fixture.origin.waitForRequests(1, to: "/held")
        #expect(try await queue.batches.cancel(batch: "same") == "running")
        // It has heard of the end, and let go of the transfer.
        try await until {
            let name = try await queue.workers.names().first ?? ""
            let held =
                try await queue.redis.read([["HKEYS", RedisArgument(queue.keys.owned(by: name))]])[0].array ?? []
            return held.allSatisfy { $0.string?.hasPrefix("#") == true }
        }
        #expect(try await queue.batches.remove(batch: "same") == .removed)
        try await open((0..<3).map { fixture.origin.url("/\($0).png") }, nonce: "second")
        try await until { try await queue.batches.status(of: "same")?.state == .done }
        #expect(try await queue.batches.status(of: "same")?.counts[.downloaded] == 3)
        worker.drain()
        _ = try await run.value
    }

    @Test("A job that ends for its worker goes back while URLs of it are open, whose report Redis has forgotten")
    func forgottenPart() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [3, 1])
        try await f.join("w", "v")
        let jobs = try await f.claim("w", 1, count: 2).map(\.job)
        // The outcome of the first URL was reported before, and is gone.
        let report = QueueFixture.report(jobs[0], [nil, .hit, .badImage])
        #expect(try await f.queue.reports.send([report], worker: "w")[0].counted?.map(\.position) == [1, 2])
        #expect(try await f.findings("b") == [])
        #expect(try await f.queue.reports.send([report], worker: "w")[0].counted?.isEmpty == true)
        #expect(try await f.findings("b") == [])
        try await f.finish(jobs[1], "w")
        let claims = try await f.claim("v", 1, count: 3)
        #expect(claims.map(\.job) == [jobs[0]] && claims[0].outcomes == [0, 2, 10] && claims[0].deliveries == 0)
        _ = try await f.queue.reports.send([QueueFixture.report(jobs[0], [.hit])], worker: "v")
        #expect(try await f.field("state", of: "b") == "done")
        #expect(try await f.findings("b") == [])
    }

    @Test("Who reads waits for a Redis that answers, but cannot yet")
    func busy() async throws {
        let redis = try await RedisServer(options: ["--busy-reply-threshold", "1"])
        let configuration = try RedisConfiguration(url: redis.url)
        let queue = PrefetchQueue(connection: RedisConnection(configuration, name: "test"))
        let other = RedisConnection(configuration, name: "other")
        let work = """
            local t = redis.call('TIME')
            local stop = t[1] * 1000 + t[2] / 1000 + 1000
            repeat t = redis.call('TIME') until t[1] * 1000 + t[2] / 1000 > stop
            """
        // Before the script: what it says as it connects may be answered with BUSY too.
        let probe = RedisConnection(configuration, name: "probe")
        _ = try await probe.command(["PING"])
        let script = Task { try await other.command(["EVAL", RedisArgument(work), "0"]) }
        try await until { try await probe.pipeline([["GET", "x"]])[0].error?.code == "BUSY" }
        #expect(try await queue.batches.status(of: "none") == nil)
        #expect(try await queue.catalog.running() == [])
        _ = try await script.value
    }

    @Test("KEEP gives back what the worker does not name, and nothing of one that is not registered")
    func keep() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1, 1])
        try await f.join("w", "v")
        let jobs = try await f.claim("w", 1, count: 3).map(\.job)
        try await f.queue.jobs.mark(worker: "w", claim: jobs[0].claimName)
        #expect(try await f.queue.jobs.keep(worker: "w", jobs: jobs.map(\.claimName)) == 0)
        #expect(try await f.redis("HGET", f.keys.owned(by: "w"), "#mark").string == jobs[0].claimName)
        #expect(try await f.queue.jobs.keep(worker: "w", jobs: [jobs[1].claimName, "b:7:1"]) == 2)
        #expect(try await f.queue.jobs.keep(worker: "w", jobs: [jobs[1].claimName]) == 0)
        #expect(try await f.redis("HEXISTS", f.keys.owned(by: "w"), "#mark").int == 0)
        #expect(try await f.findings("b") == [])
        let claims = try await f.claim("v", 1, count: 3)
        #expect(Set(claims.map(\.job.name)) == ["b:0:1", "b:2:1"] && claims.map(\.deliveries) == [0, 0])
        #expect(try await f.queue.jobs.keep(worker: "nobody", jobs: []) == nil)
        #expect(try await f.findings("b") == [])
    }
}

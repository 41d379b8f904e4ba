import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

@Suite("A Redis that goes, comes back, and has lost something", .timeLimit(.minutes(5)))
struct RedisLossTests {
    @Test("Redis is ended and started, or killed, under submit and workers: everything ends once")
    func restarted() async throws {
        let bench = try await FaultBench(options: ["--appendfsync", "everysec"])
        try await bench.submit(600)
        let workers = try await bench.workers(2)
        try await bench.untilFinished(100)
        try await bench.redis.restart()
        try await bench.untilFinished(250)
        await bench.redis.kill9()
        try await until { workers.allSatisfy { $0.stderr.contains("waiting for Redis: ") } }
        try await bench.redis.start()
        try await bench.expectAllThere(600, workers: workers)
        for worker in workers { #expect(worker.stderr.contains("Redis is back")) }
    }

    @Test("Redis has lost its tail, and with it the end of the list: submit --resume goes on, nothing counts twice")
    func lostTail() async throws {
        let bench = try await FaultBench()
        try await bench.submit(500, "first")
        let file = bench.redis.directory.path("appendonlydir/appendonly.aof.1.incr.aof")
        var (before, after) = (stat(), stat())
        #expect(stat(file, &before) == 0)
        let list = bench.list(500)
        try await bench.done(["submit", list, "--name", "urls", "--job-size", "8", "--window", "all"])
        #expect(stat(file, &after) == 0)
        let workers = try await bench.workers(2)
        try await bench.untilFinished(200, "first")
        await bench.redis.kill9()
        // In the middle of the second list; Redis cuts off what is no whole command.
        let isCut = truncate(file, (before.st_size + after.st_size) / 2) == 0
        #expect(isCut)
        try await bench.redis.start()
        try await bench.expectAllThere(500, "first")
        #expect(try await bench.queue.batches.status(of: "urls")?.isSealed != true)
        if try await bench.queue.batches.status(of: "urls") == nil {
            try await bench.done(["submit", list, "--name", "urls"])
        } else {
            try await bench.done(["submit", list, "--resume"])
        }
        try await bench.expectAllThere(500, workers: workers)
    }

    @Test(
        "Redis was emptied in mid batch: workers idle, status does not know the batch, submit makes it again",
        arguments: [true, false])
    func emptied(byFlush: Bool) async throws {
        let bench = try await FaultBench()
        try await bench.submit(400)
        let workers = try await bench.workers(2)
        try await bench.untilFinished(100)
        if byFlush {
            try await bench.redis("FLUSHALL")
        } else {
            await bench.redis.kill9()
            #expect(rename(bench.redis.directory.path("appendonlydir"), bench.redis.directory.path("gone")) == 0)
            try await bench.redis.start()
        }
        try await until { try await bench.queue.workers.names().count == 2 }
        let status = try await bench.done(["status", "urls"], 66)
        #expect(status.stderr.contains("there is no batch 'urls'"), "\(status)")
        #expect(try await bench.done(["rm", "urls", "--force", "--yes"], 66).stderr.contains("no batch 'urls'"))
        // They wait, and cost next to nothing: an interval is what is measured here.
        try await until { try await bench.redis("INFO", "clients").string?.contains("blocked_clients:2") ?? false }
        let before = workers.map { processorTime(of: $0.pid) }
        try await Task.sleep(for: .seconds(1))
        for (worker, used) in zip(workers, before) {
            #expect(worker.isRunning && processorTime(of: worker.pid) - used < 30)
        }
        let list = bench.folder.path("urls.txt")
        #expect(try await bench.done(["fsck"]).stdout == "0 batches, everything agrees\n")
        let submit = try await bench.done(["submit", list, "--name", "urls"])
        #expect(submit.stdout == "urls\n" && submit.stderr.contains("queued 400 URLs as urls"), "\(submit)")
        try await bench.expectAllThere(400, workers: workers)
        let counts = try #require(try await bench.queue.batches.status(of: "urls")).counts
        #expect(counts[.hit] >= 80, "\(counts)")
        #expect(bench.origin.requestCount() <= 400 + 2 * 8)
    }

    @Test("Redis is full in mid submit: the feeder waits, status says so, workers drain it, and it continues")
    func full() async throws {
        let bench = try await FaultBench(appendOnly: false)
        let used = try await bench.queue.connection.serverFacts().usedMemory
        // Lines that end without the network, of 1 KB each, so that a megabyte is many jobs. The limit leaves room for the scripts, the
        // connections of the workers, and one push.
        let filler = String(repeating: "x", count: 1000)
        let lines = [bench.origin.url("/a.png")] + (0..<3000).map { "not a url \($0) \(filler)" }
        bench.folder.write(Array(lines.map { $0 + "\n" }.joined().utf8), to: "urls.txt")
        // No line has a detail, which would take as much memory.
        var batch = NewBatch(list: try URLList(path: bench.folder.path("urls.txt")))
        (batch.settings.turn.name, batch.keepDetails) = ("urls", 0)
        _ = try await batch.open(in: bench.queue)
        try await bench.redis("CONFIG", "SET", "maxmemory", String(used + 2_200_000))
        let submit = try await bench.coord([
            "submit", bench.folder.path("urls.txt"), "--resume", "--window", "all",
        ])
        // The memory in use stays below the limit by up to one job.
        try await until { try await bench.done(["status"]).stdout.contains("Redis is full: ") }
        try await until { try await bench.done(["status", "--json"]).stdout.contains(#""redis_full":true"#) }
        #expect(try await bench.done(["status"]).stdout.contains("no worker is running"))
        #expect(submit.isRunning && submit.stdout == "urls\n")
        // The window has no end, and is not what it waits for.
        try await until { submit.stderr.contains("hint: to continue at once, give it more memory") }
        #expect(submit.stderr.contains("Redis is full: it has reached its maxmemory"), "\(submit.stderr)")
        #expect(submit.stderr.contains("no worker is running: ") && !submit.stderr.contains("window"))
        let workers = try await bench.workers(2)
        #expect(await submit.wait() == .exited(0), "\(submit.stderr)")
        try await until { try await bench.queue.batches.status(of: "urls")?.state == .done }
        let counts = try #require(try await bench.queue.batches.status(of: "urls")).counts
        #expect(counts.finished == 3001 && counts[.invalidURL] == 3000 && counts[.downloaded] == 1)
        for worker in workers { worker.signal(SIGTERM) }
        for worker in workers { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
        try await bench.done(["fsck"])
    }

    @Test("A Redis that wants another password, is read-only or full for a while ends no worker")
    func refusing() async throws {
        let bench = try await FaultBench(appendOnly: false)
        try await bench.submit(900)
        let workers = try await bench.workers(2)
        func untilTold(_ times: Int, _ text: String) async throws {
            try await until { workers.allSatisfy { $0.stderr.components(text) >= times } }
        }
        try await bench.untilReady(workers)
        try await bench.untilFinished(100)
        let admin = RedisConnection(try RedisConfiguration(url: bench.redis.url), name: "admin")
        try await admin.command(["CONFIG", "SET", "requirepass", "secret"])
        try await admin.command(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
        try await untilTold(1, "waiting for Redis: Redis requires a password")
        try await admin.command(["CONFIG", "SET", "requirepass", ""])
        try await untilTold(1, "Redis is back")
        try await bench.untilFinished(250)
        try await admin.command(["REPLICAOF", "127.0.0.1", "1"])
        try await untilTold(1, "waiting for Redis: Redis cannot serve now: ")
        try await admin.command(["REPLICAOF", "NO", "ONE"])
        try await untilTold(2, "Redis is back")
        // Everything that drains goes on in a full Redis.
        try await admin.command(["CONFIG", "SET", "maxmemory", "1"])
        try await bench.expectAllThere(900, workers: workers)
    }

    @Test("A Redis that will not have us, or cannot keep a queue, is said within two seconds: 77 and 78")
    func refusedAtStart() async throws {
        let bench = try await FaultBench(appendOnly: false)
        let list = bench.list(3)
        try await bench.redis(
            "ACL", "SETUSER", "weak", "on", ">pw", "~*", "&*", "+@all", "-eval", "-evalsha", "-script")
        let weak = bench.redis.url.replacing("unix://", with: "unix://weak:pw@")
        let wrong = bench.redis.url.replacing("unix://", with: "unix://weak:no@")
        func expect(_ code: Int32, _ url: String, _ text: String) async throws {
            let start = ContinuousClock.now
            let submit = try await bench.coord(["submit", list], url: url)
            let worker = try await bench.workers(1, url: url)[0]
            for child in [submit, worker] {
                #expect(await child.wait() == .exited(code), "\(child.stderr)")
                #expect(child.stderr.contains(text) && child.stderr.contains("hint: "), "\(child.stderr)")
            }
            #expect(ContinuousClock.now - start < .seconds(4))
        }
        try await expect(77, wrong, "WRONGPASS")
        try await expect(77, weak, "NOPERM")
        try await expect(77, weak, "redis-cli ACL SETUSER NAME +@read +@write +@scripting +@connection +info +time")
        // With what the hint says it works.
        try await bench.redis(
            "ACL", "SETUSER", "weak", "+@read", "+@write", "+@scripting", "+@connection", "+info", "+time")
        let healed = try await bench.coord(["submit", list, "--name", "healed"], url: weak)
        #expect(await healed.wait() == .exited(0), "\(healed.stderr)")
        try await bench.redis("FLUSHALL")
        let renamed = try await RedisServer(options: ["--rename-command", "EVALSHA", ""])
        let refused = try await bench.coord(["submit", list], url: renamed.url)
        #expect(await refused.wait() == .exited(77))
        #expect(refused.stderr.contains("Redis has no command EVALSHA"), "\(refused.stderr)")
        try await bench.redis("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        try await expect(78, bench.redis.url, "may throw away parts of the queue")
        #expect(try await bench.redis("DBSIZE").int == 0)
    }
}

extension String {
    /// How often a text stands in it.
    fileprivate func components(_ text: String) -> Int { ranges(of: text).count }
}

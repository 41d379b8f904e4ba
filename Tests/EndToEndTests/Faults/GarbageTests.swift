import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

@Suite("Foreign things in Redis", .timeLimit(.minutes(5)))
struct GarbageTests {
    @Test(
        "What is no job is moved aside and said once; other jobs and batches finish; what is broken is said, and made again"
    )
    func garbage() async throws {
        let bench = try await FaultBench(appendOnly: false)
        try await bench.submit(80)
        try await bench.submit(24, "other")
        try await bench.submit(24, "typed")
        let jobs = RedisArgument("prefetch:{default}:jobs:urls")
        let connection = bench.queue.connection
        func element(_ index: Int) async throws -> [UInt8] {
            try #require(try await connection.command(["LINDEX", jobs, RedisArgument(index)]).bytes)
        }
        // One job each is replaced: by text, by its own first half, by itself with a wrong checksum, by one of another batch.
        let (half, wrong) = (try await element(1), try await element(2))
        let foreign = try #require(
            try await connection.command(["LINDEX", "prefetch:{default}:jobs:other", "0"]).bytes)
        try await connection.command(["LSET", jobs, "0", RedisArgument("garbage\u{1B}[31m\u{7}")])
        try await connection.command(["LSET", jobs, "1", RedisArgument(Array(half.prefix(half.count / 2)))])
        try await connection.command(["LSET", jobs, "2", RedisArgument(wrong.dropLast(2) + [UInt8(ascii: "X"), 10])])
        try await connection.command(["LSET", jobs, "3", RedisArgument(foreign)])
        try await connection.command(["RPUSH", jobs, RedisArgument([UInt8](repeating: 0x41, count: 50_000_000))])
        // And a batch whose list is no list.
        try await bench.redis("DEL", "prefetch:{default}:jobs:typed")
        try await bench.redis("SET", "prefetch:{default}:jobs:typed", "mine")
        let workers = try await bench.workers(2)
        try await bench.untilFinished(48)
        try await until { try await bench.queue.batches.status(of: "other")?.state == .done }
        try await until { try await bench.redis("LLEN", "prefetch:{default}:dead").int == 5 }
        try await until { try await bench.done(["status"]).stdout.contains("typed cannot end (WRONGTYPE") }
        let status = try await bench.done(["status"]).stdout
        #expect(status.contains("5 malformed job list elements; prefetch-coord fsck shows them"), "\(status)")
        let said = workers.map(\.stderr).joined()
        for text in [#"'garbage\x1b[31m\x07'"#, "'prefetch-job 1 other:", "'AAAAAAAA"] {
            #expect(said.ranges(of: "moved to the dead-letter list: \(text)").count == 1, "\(text): \(said)")
        }
        #expect(said.ranges(of: "moved to the dead-letter list: ").count == 5, "\(said)")
        #expect(said.ranges(of: "typed cannot be processed (WRONGTYPE").count <= 2)

        let fsck = try await bench.done(["fsck"], 1)
        #expect(fsck.stdout.contains("urls: I2: 32 open URLs are in no job"), "\(fsck)")
        #expect(fsck.stdout.contains("typed: Type: prefetch:{default}:jobs:typed is a string, not a list"), "\(fsck)")
        #expect(fsck.stdout.contains(#"dead: 'garbage\x1b[31m\x07'"#), "\(fsck)")
        let list = bench.folder.path("urls.txt")
        for (purpose, command) in [
            ("remove it", "rm --force typed"), ("remove it", "rm --force urls"),
            ("make it again", "submit \(list) --name urls"),
        ] {
            #expect(fsck.stderr.contains("/prefetch-coord \(command) --redis "), "\(fsck)")
            #expect(fsck.stderr.contains("\(purpose): "), "\(fsck)")
        }
        #expect(try await bench.redis("TYPE", "prefetch:{default}:jobs:typed") == .status("string"))
        // The workers see that the rest of it is in no job.
        try await until {
            try await bench.done(["status"]).stdout.contains(
                "urls cannot end (32 open URLs are in no job): remove it with prefetch-coord rm --force urls")
        }
        let cancelled = try await bench.done(["cancel", "typed", "--yes"], 0)
        #expect(cancelled.stdout.contains("typed"), "\(cancelled)")
        for name in ["typed", "urls"] {
            let removed = try await bench.done(["rm", "--force", name, "--yes"])
            #expect(removed.stdout == "removed \(name)\n", "\(removed)")
        }
        try await bench.submit(24, "typed")
        try await bench.submit(80)
        try await bench.expectAllThere(24, "typed")
        try await bench.expectAllThere(24, "other")
        try await bench.expectAllThere(80, workers: workers)
        // What was no job stays to be seen.
        let again = try await bench.done(["fsck", "--json"]).stdout
        #expect(again.contains(#""finding_count":0"#) && again.contains(#""dead":5"#), "\(again)")
        #expect(again.contains(#""commands":[]"#), "\(again)")
    }

    @Test("Where the key that lists the batches is none, fsck names it, and a worker brings all of them back")
    func lostBatches() async throws {
        let bench = try await FaultBench(appendOnly: false)
        try await bench.submit(16)
        try await bench.submit(8, "other")
        let key = "prefetch:{default}:batches"
        let before = try await bench.redis("ZRANGE", key, "0", "-1", "WITHSCORES")
        try await bench.redis("DEL", key)
        try await bench.redis("SET", key, "mine")
        let fsck = try await bench.done(["fsck"], 1)
        #expect(fsck.stdout.hasPrefix("queue: Type: \(key) is a string, not a zset\n"), "\(fsck)")
        #expect(fsck.stderr.contains("sets and lists of the queue are healed by the next worker"), "\(fsck)")
        #expect(try await bench.redis("TYPE", key) == .status("string"))
        let workers = try await bench.workers(1)
        try await bench.untilFinished(16)
        try await bench.untilFinished(8, "other")
        try await until { try await bench.redis("TYPE", key) == .status("zset") }
        try await until { workers[0].stderr.contains("healed the queue: put aside \(key) is a string, not a zset") }
        #expect(try await bench.redis("ZRANGE", key, "0", "-1", "WITHSCORES") == before)
        try await bench.expectAllThere(16)
        try await bench.expectAllThere(8, "other", workers: workers)
        #expect(try await bench.done(["fsck"]).stdout == "2 batches, everything agrees\n")
    }

    @Test("Scripts are flushed ten times a second, and every seventh reply is lost: everything ends once")
    func lostScriptsAndReplies() async throws {
        let bench = try await FaultBench()
        let proxy = FaultProxy(target: bench.redis.socketPath)
        let flusher = Task {
            while !Task.isCancelled {
                try await bench.redis("SCRIPT", "FLUSH")
                try await Task.sleep(for: .milliseconds(100))
            }
        }
        let submit = try await bench.coord(
            ["submit", bench.list(500), "--name", "urls", "--job-size", "8", "--window", "20"], url: proxy.url)
        let workers = try await bench.workers(2, url: proxy.url)
        // A program whose first question is cut off may say so and end: from here on it must not.
        try await until { try await bench.queue.workers.names().count == 2 }
        try await until { try await bench.queue.batches.status(of: "urls")?.pushed ?? 0 > 0 }
        proxy.arm(.cutBeforeReply, every: 7)
        #expect(await submit.wait() == .exited(0), "\(submit.stderr)")
        try await bench.untilFinished(500)
        proxy.arm(.cutBeforeReply, every: 0)
        flusher.cancel()
        #expect(proxy.triggered > 10)
        try await bench.expectAllThere(500, workers: workers)
    }
}

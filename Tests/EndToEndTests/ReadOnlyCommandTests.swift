import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

/// What shows something answers, whatever Redis is busy with or refuses.
@Suite("Read-only commands always answer", .timeLimit(.minutes(5)))
struct ReadOnlyCommandTests {
    /// Every command that only shows something, and what ends it where all is well.
    private static let commands = [
        ["status"], ["status", "b"], ["workers"], ["failures", "b"], ["why", "http://192.0.2.1/0.png"],
    ]

    /// A batch of ten URLs, two of which have failed, and the record of a worker.
    private func batch() async throws -> RemoteBatch {
        let b = try await RemoteBatch()
        let urls = (0..<10).map { "http://192.0.2.1/\($0).png" }
        try await b.submit(urls, as: "b")
        for index in 0..<2 { try await b.settle("b", index, urls[index], .httpError) }
        #expect(try await b.queue.workers.join(worker: "w", lease: 600_000, about: []))
        return b
    }

    @Test("Where Redis refuses every write all of them answer as before, also of a batch whose deadline has passed")
    func refusesWrites() async throws {
        let b = try await batch()
        let keys = b.queue.keys
        let connection = b.queue.connection
        for command in [
            ["HSET", keys.batch("b"), "deadline", "1"], ["ZADD", keys.deadlines, "1", "b"],
            // A batch that has expired: its name would be taken out of the list.
            ["ZADD", keys.batches, "1", "gone"],
            // As MISCONF does where its disk is full: NOREPLICAS to whatever may write.
            ["CONFIG", "SET", "min-replicas-to-write", "1"],
        ] { _ = try await connection.command(command.map { RedisArgument($0) }) }
        await #expect(throws: RedisError.self) { _ = try await connection.command(["SET", "x", "1"]) }
        for command in Self.commands {
            let child = try await b.ended(command)
            #expect(await child.wait() == .exited(0), "\(command): \(child.stdout) \(child.stderr)")
            #expect(!child.stdout.isEmpty)
        }
        // The check of one batch reads only, too.
        let check = try await b.ended(["fsck", "b"])
        #expect(await check.wait() == .exited(0), "\(check.stdout) \(check.stderr)")
    }

    @Test(
        "While the disk of a cache is full its run is looked at as ever, and afterwards an error says what to do",
        .enabled(if: LoopFileSystem.isPermitted, "this machine permits no mount"))
    func fullDisk() async throws {
        let disk = TemporaryDirectory()
        #expect(LoopFileSystem.shell("mount -t tmpfs -o size=6m none '\(disk.path)'"))
        defer { umount2(disk.path, Int32(MNT_DETACH)) }
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(body: [UInt8](repeating: 7, count: 100_000)) }
        let urls = (0..<100).map { origin.url("/\($0).png") }
        disk.write(Array(urls.map { $0 + "\n" }.joined().utf8), to: "urls.txt")
        let cache = disk.path("cache")
        func coord(_ words: [String]) async throws -> ChildProcess {
            try await ChildProcess(
                builtProduct("prefetch-coord"), words + ["--cache", cache, "--state", disk.path("state")])
        }
        let run = try await coord([
            "run", disk.path("urls.txt"), "--name", "b", "--allow-net", "127.0.0.0/8", "--validate", "none", "-n", "1",
        ])
        // Nor does Redis take anything once the last blocks are gone, too small for an image.
        await origin.waitForRequests(60)
        #expect(!LoopFileSystem.shell("cat /dev/zero 2>/dev/null >'\(disk.path("rest"))'"))
        try await until { run.stderr.contains("MISCONF") }
        let commands = Self.commands.map { $0.first == "why" ? ["why", urls[0]] : $0 }
        for command in commands {
            let child = try await coord(command)
            #expect(await child.wait() == .exited(0), "\(command): \(child.stderr)")
        }
        run.signal(SIGKILL)
        await run.wait()
        // The server has ended with it, and a new one has no room for what it notes.
        try await until {
            let child = try await coord(["status"])
            let status = await child.wait()
            return status == .exited(74) && child.stderr.contains("\nhint: free space on that disk")
        }
    }

    @Test("A Redis that hangs is told within seconds, with 69")
    func hangs() async throws {
        let b = try await batch()
        b.redis.freeze()
        // doctor tells of it as one of its findings.
        let began = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (command, code) in Self.commands.map({ ($0, Int32(69)) }) + [(["doctor"], 1)] {
                group.addTask { try await b.done(command, code) }
            }
            try await group.waitForAll()
        }
        // A second and a half by themselves; not the 15 s of commands that can wait.
        #expect(ContinuousClock.now - began < .seconds(12))
        b.redis.thaw()
    }

    @Test("Beside 10,000 finished batches a reading of one costs Redis some dozens of commands")
    func manyBatches() async throws {
        let b = try await batch()
        let keys = b.queue.keys
        let made = """
            local K = KEYS[1]
            for i = 1, 10000 do
              local id = 'old' .. i
              redis.call('ZADD', K .. ':batches', i, id)
              redis.call('HSET', K .. ':b:' .. id, 'state', 'done', 'total', 1, 'finished', 1, 'o1', 1, 'sealed', 1, 'created', i, 'ended', i)
              redis.call('HSET', K .. ':b:' .. id .. ':w', 'w:1', 1)
            end
            return 1
            """
        _ = try await b.queue.connection.command(["EVAL", RedisArgument(made), "1", RedisArgument(keys.root)])
        func commands() async throws -> Int {
            let stats = try await b.queue.connection.command(["INFO", "stats"]).string ?? ""
            let match = try #require(stats.firstMatch(of: /total_commands_processed:([0-9]+)/))
            return try #require(Int(match.1))
        }
        for (command, most) in [(["status", "b"], 150), (["failures", "b"], 150), (["workers"], 150)] {
            let before = try await commands()
            let child = try await b.ended(command)
            #expect(await child.wait() == .exited(0), "\(command): \(child.stderr)")
            let cost = try await commands() - before
            #expect(cost <= most, "\(command): \(cost) commands")
        }
        let all = try await b.ended(["status", "--json"])
        #expect(await all.wait() == .exited(0), "\(all.stderr)")
    }

    @Test("A worker that waits costs Redis four commands a second at most")
    func idleWorker() async throws {
        let b = try await RemoteBatch()
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"), ["--redis", b.redis.url, "--cache", b.folder.path("cache")])
        try await until { worker.stderr.contains("is ready") || worker.stdout.contains("is ready") }
        // Every command of this test's own is counted, and INFO counts those before it.
        var own = 0
        func ask(_ words: [RedisArgument]) async throws -> RedisValue {
            own += 1
            return try await b.queue.connection.command(words)
        }
        func figures() async throws -> (commands: Int, seconds: Double) {
            let time = try await ask(["TIME"]).array ?? []
            let asked = own
            let reply = try await ask(["INFO", "stats"]).string ?? ""
            let match = try #require(reply.firstMatch(of: /total_commands_processed:([0-9]+)/))
            let seconds = Double(time.first?.int ?? 0) + Double(time.last?.int ?? 0) / 1e6
            return ((Int(match.1) ?? 0) - asked, seconds)
        }
        // Two heartbeats after the first: it has said that it has nothing.
        let name = try #require(try await b.queue.workers.names().first)
        func nextBeat(after last: Int) async throws -> Int {
            let key = RedisArgument(b.queue.keys.worker(name))
            while true {
                if let beat = try await ask(["HGET", key, "beat"]).int, beat > last { return beat }
                try await Task.sleep(for: .milliseconds(100))
            }
        }
        var beat = 0
        for _ in 0..<3 { beat = try await nextBeat(after: beat) }
        let before = try await figures()
        beat = try await nextBeat(after: beat)
        let after = try await figures()
        let rate = Double(after.commands - before.commands) / (after.seconds - before.seconds)
        #expect(rate <= 4, "\(rate) commands a second")
        worker.signal(SIGTERM)
        await worker.wait()
    }
}

import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

/// Commands that stay while Redis is away, or refuses them for a while.
@Suite("A Redis that is away while a list is queued or a batch is watched", .timeLimit(.minutes(5)))
struct AwayRedisTests {
    /// All but the first line end without the network, so that one worker ends them all in no time.
    private func list(_ bench: FaultBench, _ count: Int = 2_000) -> String {
        let lines = [bench.origin.url("/a.png")] + (1..<count).map { "not a url \($0)" }
        bench.folder.write(Array(lines.map { $0 + "\n" }.joined().utf8), to: "urls.txt")
        return bench.folder.path("urls.txt")
    }

    /// Until a program says something, or ends without it.
    private func untilSaid(_ text: String, _ child: ChildProcess) async throws {
        try await until { child.stderr.contains(text) || !child.isRunning }
        #expect(child.stderr.contains(text), "\(child.stderr)")
    }

    @Test("submit waits for a Redis that is not there yet, says so, and queues the list when it comes")
    func atStart() async throws {
        let bench = try await FaultBench()
        await bench.redis.stop()
        let submit = try await bench.coord(["submit", list(bench), "--name", "urls"])
        try await untilSaid("waiting for Redis: ", submit)
        try #require(submit.isRunning)
        try await bench.redis.start()
        #expect(await submit.wait() == .exited(0), "\(submit.stderr)")
        #expect(submit.stderr.contains("connected after ") && submit.stdout == "urls\n", "\(submit.stderr)")
        #expect(try await bench.queue.batches.status(of: "urls")?.pushed == 2_000)
        // Who only looks is told at once.
        await bench.redis.stop()
        try await bench.done(["status"], 69)
    }

    @Test("A signal ends the wait with the usual code, and what to type next", arguments: [SIGINT, SIGTERM])
    func stopped(signal: Int32) async throws {
        let bench = try await FaultBench()
        await bench.redis.stop()
        let file = list(bench)
        let submit = try await bench.coord(["submit", file])
        try await untilSaid("waiting for Redis: ", submit)
        submit.signal(signal)
        #expect(await submit.wait() == .exited(75), "\(submit.stderr)")
        #expect(submit.stderr.contains("hint: ") && submit.stderr.contains("submit \(file)"), "\(submit.stderr)")
        try await bench.redis.start()
        #expect(try await bench.redis("DBSIZE").int == 0)
    }

    @Test("A Redis that takes no writes or is away for longer than 10 s stops no feeder", arguments: [false, true])
    func whileFed(isAway: Bool) async throws {
        let bench = try await FaultBench()
        let submit = try await bench.coord([
            "submit", list(bench), "--name", "urls", "--window", "1", "--job-size", "4",
        ])
        try await untilSaid("longer than the window", submit)
        if isAway {
            await bench.redis.kill9()
        } else {
            try await bench.redis("CONFIG", "SET", "min-replicas-to-write", "1")
        }
        try await untilSaid("waiting for Redis: ", submit)
        // An interval is what is measured here: it used to give up after 10 s.
        let began = ContinuousClock.now
        try await until { ContinuousClock.now - began > .seconds(11) || !submit.isRunning }
        try #require(submit.isRunning, "\(submit.stderr)")
        if isAway {
            try await bench.redis.start()
        } else {
            try await bench.redis("CONFIG", "SET", "min-replicas-to-write", "0")
        }
        try await untilSaid("Redis is back after ", submit)
        let workers = try await bench.workers(1)
        #expect(await submit.wait() == .exited(0), "\(submit.stderr)")
        try await until { try await bench.queue.batches.status(of: "urls")?.state == .done }
        #expect(try await bench.queue.batches.status(of: "urls")?.counts[.invalidURL] == 1_999)
        for worker in workers { worker.signal(SIGTERM) }
        for worker in workers { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
    }

    @Test("A signal ends a feeder whose Redis is away, with the hint to resume")
    func stoppedWhileFed() async throws {
        let bench = try await FaultBench()
        let file = list(bench)
        let submit = try await bench.coord([
            "submit", file, "--name", "urls", "--window", "1", "--job-size", "4", "--queue", "mine",
        ])
        try await untilSaid("longer than the window", submit)
        bench.redis.freeze()
        submit.signal(SIGTERM)
        let end = await submit.wait()
        bench.redis.thaw()
        #expect(end == .exited(75), "\(submit.stderr)")
        #expect(
            submit.stderr.contains("submit --resume \(file) --redis \(bench.redis.url) --queue mine\n"),
            "\(submit.stderr)")
    }

    @Test(
        "watch goes on after a password that was wanted for a while", arguments: [["--json"], ["--progress", "plain"]])
    func watched(options: [String]) async throws {
        let bench = try await FaultBench(appendOnly: false)
        try await bench.submit(20)
        let watch = try await bench.coord(["watch", "urls"] + options)
        // It has looked once at least: two connections are there, ours and its own.
        try await until {
            try await bench.redis("CLIENT", "LIST").string?.contains("name=prefetch-coord") == true
                && (options == ["--json"] || watch.stderr.contains("urls"))
        }
        let admin = RedisConnection(try RedisConfiguration(url: bench.redis.url), name: "admin")
        try await until { try await admin.command(["CLIENT", "LIST"]).string?.contains("cmd=hgetall") == true }
        try await admin.command(["CONFIG", "SET", "requirepass", "secret"])
        try await admin.command(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
        try await untilSaid("waiting for Redis: Redis requires a password", watch)
        // Nobody comes in now.
        try await bench.done(["watch", "urls"], 77)
        #expect(watch.isRunning, "\(watch.stderr)")
        try await admin.command(["CONFIG", "SET", "requirepass", ""])
        try await untilSaid("Redis is back", watch)
        try await bench.done(["cancel", "urls", "--yes"])
        #expect(await watch.wait() == .exited(4), "\(watch.stderr)")
        guard options == ["--json"] else { return }
        let last = #""completion","finishedCount":20,"skippedCount":20}"# + "\n"
        #expect(watch.stdout.hasSuffix(last), "\(watch.stdout)")
    }

    @Test("While a feeder waits for memory status says so, and after its death that the list is waited for")
    func isWaitingForMemory() async throws {
        let bench = try await FaultBench(appendOnly: false)
        let submit = try await bench.coord([
            "submit", list(bench), "--name", "urls", "--window", "1", "--job-size", "4",
        ])
        try await untilSaid("longer than the window", submit)
        let later = "#!lua flags=allow-oom\nreturn redis.call('HINCRBY', KEYS[1], 'ahead', 10000)"
        try await bench.redis("CONFIG", "SET", "maxmemory", "1")
        try await untilSaid("Redis is full", submit)
        // Ten seconds go by on the queue's clock.
        try await bench.redis("EVAL", later, "1", "prefetch:{default}:clock")
        var text = ""
        for _ in 0..<40 {
            text = try await bench.done(["status", "urls"]).stdout
            if text.contains("waiting for memory") { break }
        }
        #expect(text.contains("urls  waiting for memory  ") && !text.contains("waiting for its list"), "\(text)")
        #expect(!text.contains("--resume"), "\(text)")
        let json = try await bench.done(["status", "--json"]).stdout
        #expect(json.contains(#""waiting_for_list":[],"waiting_for_memory":["urls"]"#), "\(json)")
        submit.signal(SIGKILL)
        _ = await submit.wait()
        try await bench.redis("EVAL", later, "1", "prefetch:{default}:clock")
        text = try await bench.done(["status", "urls"]).stdout
        #expect(text.contains("urls  waiting for its list  ") && text.contains("submit --resume"), "\(text)")
    }
}

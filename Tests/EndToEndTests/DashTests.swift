import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

@Suite("The dashboard on a terminal", .timeLimit(.minutes(5)))
struct DashTests {
    /// What a view has in front of a line; the log has the time of day.
    private static let views = ["SKIPPED BY CAUSE", "WORKER ", "SKIPPED BY CAUSE", "HOST ", ""]

    /// Opens the dashboard in a shell, with its pid in a file.
    private func open(_ b: RemoteBatch, _ tmux: Tmux, _ arguments: String = "") async throws {
        try await tmux.type(
            b.coordWords("dash \(arguments)") + " & echo $! >'\(b.folder.path("pid"))'; fg >/dev/null; echo code=$?")
        try await until { try await tmux.modes.isAlternate }
    }

    private func pid(_ b: RemoteBatch) throws -> Int32 {
        let text = String(decoding: b.folder.read("pid") ?? [], as: UTF8.self)
        return try #require(Int32(text.filter { $0.isNumber }))
    }

    @Test("A run with all views, four sizes and a worker that is killed; then the terminal is as it was")
    func run() async throws {
        let b = try await RemoteBatch()
        let origin = try OriginServer()
        let good = OriginResponse(body: GeneratedImage.png(seed: 3, width: 16, height: 16), delay: 0.01)
        origin.setFallback { $0.path.hasSuffix(".png") ? good : OriginResponse(status: 404) }
        var held = good
        held.fault = .stallBeforeHeader
        origin.route("/held.png", sequence: [held, held, held, held, good])
        let urls = (0..<400).map { origin.url($0 % 9 == 0 ? "/\($0).bad" : "/\($0).png") } + [origin.url("/held.png")]
        try await b.submit(urls, as: "big", ["--timeout", "60s"])
        let tmux = try await Tmux(columns: 80, rows: 24)
        try await open(b, tmux, "big --refresh 0.2")
        let workers = try await b.workers(2, ["--lease", "2s"])
        try await tmux.wait(for: "RUNNING")
        try await tmux.wait(for: "httpError 404")
        await origin.waitForRequests(1, to: "/held.png")
        var victim: ChildProcess?
        for name in try await b.queue.workers.names() {
            let owned = try await b.queue.connection.command(["HKEYS", RedisArgument(b.queue.keys.owned(by: name))])
            guard (owned.array ?? []).contains(where: { $0.string?.hasPrefix("big:") == true }) else { continue }
            victim = workers.first { name.hasSuffix(":\($0.pid)") }
        }
        try #require(victim).signal(SIGKILL)
        try await tmux.wait(for: "+1 LOST")
        for (columns, rows) in [(80, 24), (120, 40), (60, 20), (40, 10)] {
            try await tmux.resize(columns, rows)
            for (number, title) in Self.views.enumerated() {
                try await tmux.press("\(number + 1)")
                // At the least size the first view has room for workers only.
                let expected = number == 0 && rows == 10 ? "WORKER" : title
                try await until {
                    let lines = try await tmux.rows
                    guard number == 4 else { return lines.contains { $0.hasPrefix(" " + expected) } }
                    return lines.contains { $0.prefixMatch(of: /\s\d\d:\d\d:\d\d\s/) != nil }
                }
                #expect(try await tmux.rows.allSatisfy { $0.unicodeScalars.count <= columns })
            }
        }
        try await tmux.resize(39, 9)
        try await tmux.wait(for: "terminal too small")
        try await tmux.resize(80, 24)
        try await tmux.press("5")
        try await tmux.wait(for: "is lost")
        origin.release("/held.png")
        try await tmux.wait(for: "DONE")
        try await tmux.press("1")
        try await tmux.wait(for: "401 / 401")
        try await tmux.press("q")
        try await tmux.wait(for: "code=0")
        #expect(try await tmux.isSane())
    }

    @Test(
        "The terminal is as it was after signals, a crash and a Redis that has gone",
        arguments: [SIGTERM, SIGINT, SIGABRT, SIGSEGV, SIGTRAP])
    func ends(_ signal: Int32) async throws {
        let b = try await RemoteBatch()
        try await b.submit(["http://192.0.2.1/a.png"], as: "s")
        let tmux = try await Tmux(columns: 80, rows: 24)
        try await open(b, tmux)
        try await tmux.wait(for: "no worker is there")
        if signal == SIGTERM {
            await b.redis.kill9()
            try await tmux.wait(for: "Redis is away")
        }
        if signal == SIGINT {
            try await tmux.press("C-c")
        } else {
            #expect(kill(try pid(b), signal) == 0)
        }
        try await tmux.wait(for: "code=\(128 + signal)")
        if [SIGTERM, SIGINT].contains(signal) {
            // On one line however the terminal folds it.
            let text = try await tmux.rows.joined()
            #expect(text.contains("s runs on; come back with: "), "\(text)")
        }
        #expect(try await tmux.isSane())
    }

    @Test("Ctrl-Z gives the terminal to the shell, fg takes it again; a terminal that vanishes ends it")
    func stopping() async throws {
        let b = try await RemoteBatch()
        try await b.submit(["http://192.0.2.1/a.png"], as: "s")
        let tmux = try await Tmux(columns: 80, rows: 24)
        try await open(b, tmux)
        try await tmux.wait(for: "no worker is there")
        try await tmux.press("C-z")
        try await tmux.wait(for: "Stopped")
        #expect(try await tmux.isSane())
        try await tmux.type("fg")
        try await tmux.wait(for: "no worker is there")
        #expect(try await tmux.modes.isAlternate)
        #expect(try await !tmux.modes.hasCursor)
        try await tmux.press("2")
        try await tmux.wait(for: "0 rows")
        let process = try pid(b)
        try await tmux.run("kill-server")
        try await until { kill(process, 0) != 0 }
    }

    @Test("Cancel and retry ask first, and do what they say; --readonly has neither")
    func changes() async throws {
        let b = try await RemoteBatch()
        let urls = (0..<10).map { "http://192.0.2.1/\($0).png" }
        try await b.submit(urls, as: "mine")
        for index in 0..<3 { try await b.settle("mine", index, urls[index], index == 0 ? .httpError : .downloaded) }
        let tmux = try await Tmux(columns: 80, rows: 24)
        try await open(b, tmux, "mine --readonly")
        try await tmux.wait(for: "3 / 10")
        try await tmux.press("x", "q")
        try await tmux.wait(for: "code=0")
        #expect(try await b.queue.batches.status(of: "mine")?.state == .running)
        try await tmux.type("clear")
        try await open(b, tmux, "mine")
        try await tmux.wait(for: "3 / 10")
        try await tmux.press("x")
        try await tmux.wait(for: "cancel mine with 7 URLs open? y/N")
        try await tmux.press("n")
        try await tmux.wait(for: "nothing was changed")
        try await tmux.press("x", "y")
        try await tmux.wait(for: "CANCELLED")
        #expect(try await b.queue.batches.status(of: "mine")?.state == .cancelled)
        try await tmux.wait(for: "(no worker)")
        try await tmux.press("r", "y")
        try await until { try await b.queue.batches.status(of: "mine")?.retriedBy != nil }
        try await tmux.press("q")
        try await tmux.wait(for: "code=0")
    }

    @Test("Pauses of batch, queue and worker and the priority are told to the queue, and shown")
    func settings() async throws {
        let b = try await RemoteBatch()
        try await b.submit((0..<10).map { "http://192.0.2.1/\($0).png" }, as: "mine")
        #expect(try await b.queue.workers.join(worker: "a:1", lease: 600_000, about: [("pid", "1")]))
        let tmux = try await Tmux(columns: 80, rows: 24)
        try await open(b, tmux, "mine --refresh 0.2")
        try await tmux.wait(for: "RUNNING")
        try await tmux.press("p")
        try await tmux.wait(for: "this batch is paused; p resumes it")
        try await tmux.wait(for: "PAUSED")
        #expect(try await b.queue.batches.status(of: "mine")?.isPaused == true)
        try await tmux.press("P")
        try await tmux.wait(for: "this batch is paused, and the whole queue too")
        #expect(try await b.queue.views.snapshot().settings.isPaused)
        try await tmux.press("p")
        try await tmux.wait(for: "the whole queue is paused; P resumes it")
        try await tmux.press("P")
        try await tmux.wait(for: "RUNNING")
        #expect(try await b.queue.batches.status(of: "mine")?.isEffectivelyPaused == false)
        try await tmux.press(">")
        try await tmux.wait(for: "mine has priority high")
        #expect(try await b.queue.batches.status(of: "mine")?.priority == .high)
        try await tmux.press("2", "p")
        try await tmux.wait(for: "worker a:1 is paused")
        #expect(try await b.queue.views.snapshot().workers.values.allSatisfy(\.report.isPaused))
        try await tmux.press("1")
        try await tmux.wait(for: "every worker is paused")
        try await tmux.press("q")
        try await tmux.wait(for: "code=0")
    }

    @Test("Without a terminal it names what to use, and --once prints a frame of its size without colours")
    func withoutTerminal() async throws {
        let b = try await RemoteBatch()
        let urls = (0..<10).map { "http://192.0.2.1/\($0).png" }
        try await b.submit(urls, as: "once")
        try await b.settle("once", 4, urls[4], .httpError)
        let none = try await b.done(["dash"], 78)
        #expect(
            none.stderr.contains("dash needs a terminal") && none.stderr.contains("watch")
                && none.stderr.contains("status"))
        for (columns, rows) in [(80, 24), (120, 40), (60, 20), (40, 10)] {
            let frame = try await b.done(["dash", "--once", "--size", "\(columns)x\(rows)"])
            let lines = frame.stdout.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            #expect(lines.count == rows)
            #expect(!frame.stdout.contains("\u{1B}") && frame.stdout.contains("1 / 10"))
        }
        let coloured = try await b.shell(b.coordWords("dash --once"), environment: ["FORCE_COLOR": "1"])
        await coloured.wait()
        #expect(coloured.stdout.contains("\u{1B}[32m"))
        for arguments in [
            ["--size", "80x24"], ["--refresh", "0.1"], ["--once", "--size", "80"],
        ] {
            #expect(await (try await b.coord(["dash"] + arguments)).wait() == .exited(64), "\(arguments)")
        }
        #expect(await (try await b.coord(["dash", "none", "--once"])).wait() == .exited(66))
    }

    @Test("A frame costs at most twelve commands, and few milliseconds, of a batch of a million URLs as of a thousand")
    func cost() async throws {
        let b = try await RemoteBatch()
        var calls: [Int] = []
        for total in [1_000, 1_000_000] {
            let id = "n\(total)"
            _ = try await b.queue.batches.open(
                id: id, nonce: id, exactly: true, fields: [("total", "\(total)"), ("details", "100000")])
            _ = try await b.queue.connection.pipeline([
                ["SETRANGE", RedisArgument(b.queue.keys.outcomes(id)), RedisArgument(total - 1), "\u{1}"],
                [
                    "HSET", RedisArgument(b.queue.keys.batch(id)), "finished", RedisArgument(total), "o1",
                    RedisArgument(total),
                ],
            ])
            for worker in ["a:1", "a:2", "a:3"] {
                _ = try await b.queue.workers.join(worker: worker, lease: 600_000, about: [("pid", "1")])
            }
            let tmux = try await Tmux(columns: 120, rows: 40)
            try await open(b, tmux, "\(id) --refresh 0.2")
            try await tmux.wait(for: "/ \(total == 1000 ? "1,000" : "1,000,000")")
            // Frames are the runs of the one script that each needs; the first are left out, which load it.
            let before = try await stats(b)
            try await until { try await stats(b).readings >= before.readings + 20 }
            let after = try await stats(b)
            let readings = after.readings - before.readings
            calls.append((after.calls - before.calls) / readings)
            #expect((after.microseconds - before.microseconds) / readings < 20_000)
            try await tmux.press("q")
            try await tmux.wait(for: "code=0")
        }
        #expect(calls.allSatisfy { $0 <= 12 } && abs(calls[0] - calls[1]) <= 1, "\(calls)")
    }

    /// Calls and time of all commands, those of scripts included, and runs of the script that reads a batch (it alone asks for LLEN).
    private func stats(_ b: RemoteBatch) async throws -> (calls: Int, microseconds: Int, readings: Int) {
        let text = try await b.queue.connection.command(["INFO", "commandstats"]).string ?? ""
        var sum = (calls: 0, microseconds: 0, readings: 0)
        for line in text.split(whereSeparator: \.isNewline) where line.hasPrefix("cmdstat_") {
            let parts = line.dropFirst("cmdstat_".count).split(separator: ":")
            guard parts.count == 2 else { continue }
            let values = parts[1].split(separator: ",").map { $0.split(separator: "=") }
            func value(_ name: String) -> Int { values.first { $0[0] == name }.flatMap { Int($0[1]) } ?? 0 }
            if parts[0] == "llen" { sum.readings = value("calls") }
            // The test's own reading of the statistics is none of the dashboard's; its time holds that of its commands already.
            if parts[0] == "evalsha" { sum.microseconds = value("usec") }
            if parts[0] != "info" { sum.calls += value("calls") }
        }
        return sum
    }
}

import Glibc
import Origin
import TestSupport
import Testing
import WebImage

@Suite("Progress on a terminal", .timeLimit(.minutes(5)))
struct TerminalTests {
    private let urls = (0..<10).map { "http://192.0.2.1/\($0).png" }

    /// Runs a command on a terminal of 60 columns.
    private func onTerminal(
        _ b: RemoteBatch, _ command: String, environment: [String: String] = ["TERM": "xterm", "LC_ALL": "C.UTF-8"]
    ) async throws -> ChildProcess {
        let inner = "stty cols 60 rows 20; \(command)"
        let quoted = inner.replacing("'", with: "'\\''")
        return try await b.shell("script -qefc '\(quoted)' /dev/null", environment: environment)
    }

    private func screen(_ child: ChildProcess) -> TerminalScreen {
        var screen = TerminalScreen(width: 60)
        screen.write(child.stdout)
        return screen
    }

    @Test("A few lines are redrawn in place, failures scroll above, and nothing of it is left at the end")
    func inline() async throws {
        let b = try await RemoteBatch()
        let long = "http://192.0.2.1/" + String(repeating: "a", count: 100) + "/漢字漢字"
        let list = Array(urls.dropLast()) + [long]
        try await b.submit(list, as: "tty")
        let watch = try await onTerminal(b, b.coordWords("watch tty"))
        try await until { watch.stdout.contains("0/10") }
        try await b.settle("tty", 9, long, .httpError)
        try await until { watch.stdout.contains("skipped: httpError 404") }
        let middle = screen(watch)
        #expect(middle.text.contains { $0.hasPrefix("skipped: httpError 404  http://192.0.2.1/aaa") })
        #expect(middle.text.contains { $0.hasPrefix("tty  10.0% ━") && $0.hasSuffix("  1/10") }, "\(middle.text)")
        for index in 0..<9 { try await b.settle("tty", index, list[index]) }
        #expect(await watch.wait() == .exited(3), "\(watch.stdout)")
        let end = screen(watch)
        #expect(end.widest <= 59, "\(end.widest)")
        #expect(end.unknown.isEmpty, "\(end.unknown)")
        #expect(end.frames >= 2)
        // The failure and the summary stay, the bar does not; below them there is room for a prompt.
        #expect(end.text.first?.hasPrefix("skipped: httpError 404") == true, "\(end.text)")
        #expect(
            end.text.dropFirst().first?.hasPrefix("tty done: finished 10 of 10: 9 images, 1 skipped") == true,
            "\(end.text)")
        #expect(!end.text.contains { $0.contains("━") } && end.rows.last == "")
    }

    /// The line below the last one with a beginning: the first of the live lines, whose number varies.
    private func below(_ beginning: String, _ lines: [String]) -> String? {
        lines.lastIndex { $0.hasPrefix(beginning) }.flatMap { $0 + 1 < lines.count ? lines[$0 + 1] : nil }
    }

    @Test("What the workers of a run print goes above the lines, and nothing of it is lost")
    func run() async throws {
        let b = try await RemoteBatch()
        let origin = try OriginServer()
        let image = OriginResponse(
            body: GeneratedImage.png(seed: 5, width: 10, height: 10), fault: .stallBeforeHeader)
        origin.setFallback { $0.path.hasSuffix(".png") ? image : OriginResponse(status: 404) }
        let urls = (0..<198).map { origin.url("/\($0).png") } + [origin.url("/x.bad"), origin.url("/held.png")]
        let (program, cache) = (builtProduct("prefetch-coord"), b.folder.path("own"))
        let run = try await onTerminal(
            b,
            "'\(program)' run '\(b.list(urls))' --cache '\(cache)' -n 2 --max-concurrent-downloads 1 --allow-net 127.0.0.0/8 --max-per-host 0 -v"
        )
        /// What the workers say of themselves: each a pid, how many are in flight and how many it finished.
        func workers() async throws -> [(pid: Int32, inFlight: Int, finished: Int)] {
            let status = try await b.shell("'\(program)' status --cache '\(cache)' --json")
            await status.wait()
            func numbers(_ name: String) -> [Int] {
                status.stdout.split(separator: "{\"id\":\"").dropFirst()
                    .compactMap { $0.split(separator: "\"\(name)\":").dropFirst().first }
                    .compactMap { Int($0.prefix { $0.isNumber }) }
            }
            return zip(numbers("pid"), zip(numbers("in_flight"), numbers("finished"))).map { (Int32($0), $1.0, $1.1) }
        }
        // Each has begun one before any ends: a worker of a run that finished nothing says nothing when it leaves.
        try await until { try await workers().count { $0.inFlight > 0 } == 2 }
        for index in 0..<198 { origin.release("/\(index).png") }
        try await until { screen(run).text.contains { $0.hasSuffix("  199/200") } }
        // The worker that has nothing in flight leaves, and says what it did, while the lines are still redrawn.
        var idle: Int32?
        try await until {
            let workers = try await workers()
            // What a worker says may be a second old: of those that have said all 199, nobody has one in flight that ended since.
            guard workers.map(\.finished).reduce(0, +) == 199 else { return false }
            idle = workers.first { $0.inFlight == 0 }?.pid
            return idle != nil
        }
        #expect(kill(try #require(idle), SIGTERM) == 0)
        try await until { run.stdout.contains("prefetch-worker ") }
        let frames = screen(run).frames
        try await until { screen(run).frames > frames + 1 }
        let middle = screen(run).text
        #expect(middle.count { $0.contains("━") || $0.contains(" in flight") } == 2, "\(middle)")
        #expect(middle.count { $0.hasPrefix("prefetch-worker ") } == 1, "\(middle)")
        #expect(below("prefetch-worker ", middle)?.hasSuffix("  199/200") == true, "\(middle)")
        origin.release("/held.png")
        #expect(await run.wait() == .exited(3), "\(run.stdout)")
        let end = screen(run)
        #expect(end.unknown.isEmpty && !end.text.contains { $0.contains("━") || $0.contains(" in flight") })
        #expect(end.text.contains { $0.hasPrefix("skipped: httpError 404  http://127.0.0.1:") })
        let workers = end.text.filter { $0.hasPrefix("prefetch-worker ") }
        let finished = workers.compactMap { $0.split(separator: " ").dropFirst(3).first }.compactMap { Int($0) }
        #expect(finished.reduce(0, +) == 200, "\(end.text)")
        #expect(
            end.text.contains {
                $0.hasPrefix("urls-") && $0.contains(" done: finished 200 of 200: 199 images, 1 skipped")
            })
    }

    @Test("That Redis is away stands above the lines while it is")
    func away() async throws {
        let b = try await RemoteBatch()
        try await b.submit(urls, as: "tty")
        let watch = try await onTerminal(b, b.coordWords("watch tty"))
        try await until { watch.stdout.contains("0/10") }
        await b.redis.kill9()
        try await until { screen(watch).text.contains { $0.hasPrefix("waiting for Redis: ") } }
        let shown = screen(watch).text
        #expect(below("waiting for Redis: ", shown)?.hasSuffix("  0/10") == true, "\(shown)")
        try await b.redis.start()
        try await until { screen(watch).text.contains("Redis is back") }
        for index in 0..<10 { try await b.settle("tty", index, urls[index]) }
        #expect(await watch.wait() == .exited(0))
        #expect(screen(watch).text.prefix(3).count { $0.contains("Redis") } == 2, "\(screen(watch).text)")
    }

    @Test("Ctrl-C takes the lines away before it says how to come back")
    func detach() async throws {
        let b = try await RemoteBatch()
        try await b.submit(urls, as: "tty")
        let watch = try await onTerminal(b, b.coordWords("watch tty") + " & echo pid=$!; wait $!; echo code=$?")
        try await until { watch.stdout.contains("0/10") && watch.stdout.contains("pid=") }
        let pid = watch.stdout.split(separator: "pid=").compactMap { Int32($0.prefix { $0.isNumber }) }
        #expect(kill(try #require(pid.first), SIGTERM) == 0)
        await watch.wait()
        let end = screen(watch).text.joined(separator: "\n")
        #expect(end.contains("tty runs on; come back with: ") && end.hasSuffix("code=143"), "\(end)")
        #expect(!end.contains("━") && !end.contains("no worker"), "\(end)")
    }

    @Test("A terminal that does not obey gets plain lines, and one without UTF-8 a plain bar")
    func plain() async throws {
        let b = try await RemoteBatch()
        try await b.submit(urls, as: "tty")
        for index in 0..<4 { try await b.settle("tty", index, urls[index]) }
        let ascii = try await onTerminal(
            b, b.coordWords("watch tty"), environment: ["TERM": "xterm", "LC_ALL": "C", "LANG": "en_US.UTF-8"])
        try await until { ascii.stdout.contains("4/10") }
        let dumb = try await onTerminal(b, b.coordWords("watch tty"), environment: ["TERM": "dumb"])
        try await until { dumb.stdout.contains("finished=4") }
        #expect(screen(ascii).text.contains { $0.hasPrefix("tty  40.0% ###") && $0.contains("#--") })
        for index in 4..<10 { try await b.settle("tty", index, urls[index]) }
        #expect(await ascii.wait() == .exited(0))
        #expect(await dumb.wait() == .exited(0))
        #expect(!dumb.stdout.contains("\u{1B}"))
        #expect(!ascii.stdout.unicodeScalars.contains { !$0.isASCII })
    }
}

import Glibc
import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

@Suite("How progress is told", .timeLimit(.minutes(5)))
struct ProgressTests {
    private let urls = (0..<10).map { "http://192.0.2.1/\($0).png" }

    /// The tests may run with these variables set.
    private static let noWish = ["NO_COLOR": "", "FORCE_COLOR": "", "CLICOLOR_FORCE": "", "PREFETCH_PROGRESS": ""]

    private func coord(
        _ b: RemoteBatch, _ arguments: [String], _ environment: [String: String] = [:]
    ) async throws -> ChildProcess {
        try await ChildProcess(
            builtProduct("prefetch-coord"), arguments,
            environment: Self.noWish.merging(environment) { $1 })
    }

    @Test("run --progress json: the events of watch --json on standard error, and nothing there that is no JSON")
    func json() async throws {
        let b = try await RemoteBatch()
        let origin = try OriginServer()
        let good = OriginResponse(body: GeneratedImage.png(seed: 7, width: 16, height: 16))
        origin.setFallback { $0.path.hasSuffix(".png") ? good : OriginResponse(status: 404) }
        let list = b.list((0..<30).map { origin.url($0 % 10 == 0 ? "/\($0).bad" : "/\($0).png") })
        let cache = b.folder.path("own")
        let words = ["run", list, "--cache", cache, "-n", "2", "--allow-net", "127.0.0.0/8", "--max-per-host", "0"]
        let run = try await coord(b, words + ["--progress", "json", "--json"])
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        #expect(run.stdout.hasPrefix(#"{"v":1,"id":"urls-"#) && run.stdout.components(of: "\n") == 1)
        let lines = run.stderr.split(separator: "\n")
        #expect(lines.allSatisfy { $0.hasPrefix(#"{"event":""#) && $0.hasSuffix("}") }, "\(run.stderr)")
        let events = lines.filter { !$0.hasPrefix(#"{"event":"note""#) && !$0.hasPrefix(#"{"event":"rate""#) }
        #expect(events.count == 62)
        #expect(events.first == #"{"event":"progress","finished":1,"total":30}"#)
        #expect(events.last == #"{"event":"completion","finishedCount":30,"skippedCount":3}"#)
        // By the environment too, and --quiet is stronger than that.
        let quiet = try await coord(b, words + ["--quiet"], ["PREFETCH_PROGRESS": "json"])
        #expect(await quiet.wait() == .exited(3))
        #expect(!quiet.stderr.contains("event"), "\(quiet.stderr)")
    }

    @Test("--progress json has a rate each second; watch --json has the calls alone")
    func rates() async throws {
        let b = try await RemoteBatch()
        try await b.submit(urls, as: "r")
        let watch = try await b.coord(["watch", "r", "--progress", "json"])
        let calls = try await b.coord(["watch", "r", "--json"])
        let rate =
            #"{"event":"rate","finished":0,"total":10,"rate":0,"eta_s":null,"MBps":0,"in_flight":0,"limit":"workers"}"#
        try await until { watch.stderr.components(of: rate) >= 2 }
        for index in 0..<10 { try await b.settle("r", index, urls[index]) }
        #expect(await watch.wait() == .exited(0))
        #expect(await calls.wait() == .exited(0))
        #expect(watch.stderr.hasSuffix(#"{"event":"completion","finishedCount":10,"skippedCount":0}"# + "\n"))
        #expect(!calls.stdout.contains("rate") && calls.stdout.contains("completion"), "\(calls.stdout)")
    }

    @Test("Plain lines name a worker that is lost, and how many jobs went back; none says nothing")
    func lost() async throws {
        let b = try await RemoteBatch()
        try await b.submit(urls, as: "plain", ["--job-size", "2"])
        #expect(try await b.queue.workers.join(worker: "gone:1", lease: 600_000, about: []))
        _ = try await b.queue.jobs.claim(worker: "gone:1", sequence: 1, count: 2, lease: 600_000)
        let watch = try await b.coord(["watch", "plain", "--progress", "plain"])
        let silent = try await b.coord(["watch", "plain", "--progress", "none"])
        try await until { watch.stderr.contains("finished=0") }
        // It has seen the worker when it looks for the second time.
        var reaped = false
        try await until {
            if !reaped, watch.stderr.contains("finished=") {
                try await Task.sleep(for: .seconds(1.5))
                _ = try await b.queue.workers.reap(worker: "gone:1")
                reaped = true
            }
            return watch.stderr.contains("plain WARN worker=gone:1 lost returned=2")
        }
        for index in 0..<10 { try await b.settle("plain", index, urls[index]) }
        #expect(await watch.wait() == .exited(0))
        #expect(await silent.wait() == .exited(0))
        #expect(silent.stderr == "" && silent.stdout.hasPrefix("plain done"))
    }

    @Test("What is no way to tell it is refused")
    func refused() async throws {
        let b = try await RemoteBatch()
        try await b.submit(urls, as: "r")
        for (words, environment) in [
            (["--progress", "bar"], [:]), (["--progress", "tty"], ["TERM": "xterm"]),
            ([], ["PREFETCH_PROGRESS": "bar"]),
            (["--json", "--progress", "plain"], [:]),
        ] as [([String], [String: String])] {
            let watch = try await coord(b, ["watch", "r", "--redis", b.redis.url] + words, environment)
            #expect(await watch.wait() == .exited(64), "\(words) \(environment)")
        }
        let both = try await coord(b, ["run", b.list(urls), "--quiet", "--progress", "plain"])
        #expect(await both.wait() == .exited(64))
        let without = try await coord(b, ["submit", b.list(urls), "--redis", b.redis.url, "--progress", "plain"])
        #expect(await without.wait() == .exited(64))
    }

    @Test("Colours only where they are wanted")
    func colours() async throws {
        let b = try await RemoteBatch()
        try await b.submit(urls, as: "c")
        let status = ["status", "--redis", b.redis.url]
        let table: [([String: String], Bool)] = [
            (["TERM": "xterm"], false), (["CLICOLOR_FORCE": "1"], true), (["FORCE_COLOR": "1"], true),
            (["FORCE_COLOR": "1", "NO_COLOR": "1"], false),
        ]
        for (environment, isColoured) in table {
            let child = try await coord(b, status, environment)
            #expect(await child.wait() == .exited(0))
            #expect(child.stdout.contains("\u{1B}") == isColoured, "\(environment)")
        }
        for (environment, isColoured) in [
            (["TERM": "xterm"], true), (["TERM": "xterm", "NO_COLOR": "1"], false), (["TERM": "dumb"], false),
        ] {
            let quoted = "\(b.coordWords("watch c"))".replacing("'", with: "'\\''")
            let watch = try await b.shell(
                "script -qefc '\(quoted)' /dev/null", environment: Self.noWish.merging(environment) { $1 })
            try await until { watch.stdout.contains("0/10") || watch.stdout.contains("finished=0") }
            #expect(watch.stdout.contains("\u{1B}[2m") == isColoured, "\(environment) \(watch.stdout)")
            watch.signal(SIGTERM)
            await watch.wait()
        }
    }
}

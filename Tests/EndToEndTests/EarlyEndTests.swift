import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

/// `--deadline` and `--finish-at`, as a user runs them. A transfer that hangs would take ten minutes: who ends, has given it up.
@Suite("Ending early", .timeLimit(.minutes(5)))
struct EarlyEndTests: CommandSuite {
    private let longTimeout = ["--timeout", "10m"]

    private func origin() throws -> OriginServer {
        let origin = try OriginServer()
        let good = OriginResponse(body: GeneratedImage.png(seed: 7, width: 16, height: 16))
        origin.setFallback { $0.path.hasSuffix(".png") ? good : OriginResponse(fault: .stallBeforeHeader) }
        return origin
    }

    @Test("A deadline ends a batch whose transfers hang: cancelled, exit 4, and the workers have given them up")
    func deadline() async throws {
        let b = try await RemoteBatch()
        let origin = try origin()
        let urls = (0..<20).map { origin.url("/\($0).png") } + [origin.url("/hangs"), origin.url("/too")]
        let submit = try await b.coord(
            [
                "submit", b.list(urls), "--name", "b", "--deadline", "3s", "--wait", "--json", "-q",
            ] + longTimeout)
        try await until { try await b.queue.batches.status(of: "b")?.isSealed == true }
        let running = try await b.done(["status", "b"])
        #expect(running.stdout.contains("  deadline in "), "\(running.stdout)")
        let watch = try await b.coord(["watch", "b", "--json", "--from-start"])
        let workers = try await b.workers(2)
        #expect(await submit.wait() == .exited(4), "\(submit.stderr)")
        #expect(
            submit.stdout.contains(#""state":"cancelled","total":22,"finished":22,"skipped":2"#), "\(submit.stdout)")
        #expect(submit.stdout.contains(#""ended_by":"deadline""#), "\(submit.stdout)")
        let given = ContinuousClock.now
        for worker in workers { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
        // Each beats once a second; the rest is for a machine that is busy.
        #expect(ContinuousClock.now - given < .seconds(20))
        #expect(await watch.wait() == .exited(4))
        #expect(watch.stdout.hasSuffix(#"{"event":"completion","finishedCount":22,"skippedCount":2}"# + "\n"))
        #expect(watch.stdout.split(separator: "\n").count == 46)
        let text = try await b.done(["watch", "b"], 4)
        #expect(
            text.stdout.hasPrefix("b cancelled by its deadline: finished 22 of 22: 20 images, 2 skipped ("),
            "\(text.stdout)")
        try await b.done(["fsck"])
    }

    @Test("With no worker alive a deadline ends a batch all the same: for status, for watch, and for who feeds it")
    func nobody() async throws {
        let b = try await RemoteBatch()
        let urls = (0..<300).map { "http://192.0.2.1/\($0).png" }
        try await b.submit(Array(urls.prefix(3)), as: "looked", ["--deadline", "200ms"])
        // The first command that reads it ends it, and says so.
        try await until {
            let status = try await b.done(["status", "looked"])
            return status.stdout.contains("looked  cancelled by its deadline  100.0%  finished 3 of 3")
        }
        let ended = try #require(try await b.queue.batches.status(of: "looked"))
        #expect(ended.ended >= ended.deadline && ended.deadline == ended.created + 200)
        try await b.submit(urls, as: "watched", ["--deadline", "500ms"])
        let watch = try await b.done(["watch", "watched", "--json", "--from-start"], 4)
        #expect(watch.stdout.split(separator: "\n").count == 602)
        let words = ["--window", "1", "--job-size", "1", "--deadline", "1s"]
        let feeder = try await b.done(["submit", b.list(urls), "--name", "fed"] + words, 4)
        #expect(feeder.stderr.contains("fed reached its deadline while it was fed"), "\(feeder.stderr)")
        #expect(try await b.queue.catalog.running() == [])
    }

    @Test(
        "A batch with a share ends when its last URL hangs: exit by its skips, --allow-failures allows them",
        arguments: [true, false])
    func share(allowed: Bool) async throws {
        let origin = try origin()
        let b = try await RemoteBatch()
        let urls = (0..<39).map { origin.url("/\($0).png") } + [origin.url("/hangs")]
        var words = ["submit", b.list(urls), "--wait", "-q", "--finish-at", "97.5%"]
        if allowed { words += ["--allow-failures", "1"] }
        let run = try await b.coord(words + longTimeout)
        let workers = try await b.workers(2, isBurst: false)
        #expect(await run.wait() == .exited(allowed ? 0 : 3), "\(run.stderr)")
        #expect(
            run.stdout.contains("cancelled by --finish-at 97.5%: finished 40 of 40: 39 images, 1 skipped ("),
            "\(run.stdout)")
        for worker in workers { worker.signal(SIGTERM) }
        for worker in workers { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
        let failures = try await b.done(["failures", "--json"])
        #expect(failures.stdout.contains(#"{"line":40,"url":"\#(origin.url("/hangs"))","outcome":"cancelled""#))
        #expect(failures.stdout.split(separator: "\n").count == 1, "\(failures.stdout)")
    }

    @Test("run with --max-failures ends before its list does, exits 4 and says why")
    func failures() async throws {
        let origin = try origin()
        let folder = TemporaryDirectory()
        let urls = (0..<2_000).map { origin.url("/\($0).gone") }
        origin.setFallback { _ in OriginResponse(status: 404, delay: 0.005) }
        folder.write(Array((urls.joined(separator: "\n") + "\n").utf8), to: "urls.txt")
        let run = try await ran(
            [
                "run", folder.path("urls.txt"), "--cache", folder.path("cache"), "-n", "1", "--allow-net",
                "127.0.0.0/8", "-q", "--max-failures", "10", "--max-concurrent-downloads", "1",
            ], exits: 4)
        #expect(
            run.stdout.contains(" cancelled by --max-failures 10: finished 2,000 of 2,000: 0 images, 2,000 skipped ("))
        #expect(run.stdout.contains("cancelled 1,"), "\(run.stdout)")
    }

    @Test("run with a deadline exits 4; the same list with another deadline is another batch")
    func run() async throws {
        let origin = try origin()
        let folder = TemporaryDirectory()
        folder.write(Array((origin.url("/1.png") + "\n" + origin.url("/hangs") + "\n").utf8), to: "urls.txt")
        let words = [
            "run", folder.path("urls.txt"), "--cache", folder.path("cache"), "-n", "1", "--allow-net", "127.0.0.0/8",
            "-q",
        ]
        let first = try await ChildProcess(
            builtProduct("prefetch-coord"), words + longTimeout + ["--deadline", "10m"])
        await origin.waitForRequests(1, to: "/hangs")
        first.signal(SIGKILL)
        #expect(await first.wait() == .signalled(SIGKILL))
        let second = try await ran(words + longTimeout + ["--deadline", "3s", "--json"], exits: 4)
        #expect(second.stderr.contains("other settings (--deadline 3s, was 10m)"), "\(second.stderr)")
        #expect(second.stdout.contains(#""ended_by":"deadline""#), "\(second.stdout)")
    }

    @Test("After set the same command continues its batch, at the pace that it is given itself")
    func pace() async throws {
        let origin = try origin()
        let folder = TemporaryDirectory()
        folder.write(Array((origin.url("/1.png") + "\n" + origin.url("/hangs") + "\n").utf8), to: "urls.txt")
        let cache = ["--cache", folder.path("cache")]
        let words = ["run", folder.path("urls.txt"), "-n", "1", "--allow-net", "127.0.0.0/8"]
        func run(_ options: [String], until requests: Int) async throws -> String {
            let run = try await ChildProcess(builtProduct("prefetch-coord"), words + cache + longTimeout + options)
            await origin.waitForRequests(requests, to: "/hangs")
            run.signal(SIGKILL)
            #expect(await run.wait() == .signalled(SIGKILL))
            return run.stderr
        }
        _ = try await run(["--rate-per-host", "100", "--name", "one"], until: 1)
        try await ran(["set", "one", "--rate-per-host", "50", "--max-failures", "7"] + cache)
        let again = try await run(["--rate-per-host", "100"], until: 2)
        #expect(again.contains("continuing one ") && !again.contains("other settings"), "\(again)")
        #expect(again.contains("from now on its requests follow --rate-per-host 100"), "\(again)")
        let bare = try await run([], until: 3)
        #expect(bare.contains("continuing one ") && !bare.contains("from now on"), "\(bare)")
        let other = try await run(["--max-failures", "8"], until: 4)
        #expect(other.contains("other settings (--max-failures 8, was 7)"), "\(other)")
    }
}

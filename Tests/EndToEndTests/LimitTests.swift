import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

/// What holds a run back, as the built programs tell it while something does.
@Suite("What limits a run", .timeLimit(.minutes(5)))
struct LimitTests {
    private func limit(_ bench: FaultBench) async throws -> RunLimit? {
        let snapshot = try await bench.queue.views.snapshot(newest: 5)
        return RunLimit(workers: snapshot.workers, batches: snapshot.batches)
    }

    /// Waits for a cause; then status says the same, if it is still so.
    private func expect(_ cause: LimitCause, _ bench: FaultBench) async throws -> RunLimit {
        var found: RunLimit?
        try await until {
            found = try await limit(bench)
            return found?.cause == cause
        }
        return try #require(found)
    }

    private func end(_ workers: [ChildProcess]) async {
        for worker in workers {
            worker.signal(SIGKILL)
            await worker.wait()
        }
    }

    @Test("The servers' answers: a delay before each header; then a pause, and nobody; all views tell it")
    func servers() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0.5)
        try await bench.submit(4_000)
        #expect(try await limit(bench)?.cause == .workers)
        let watch = try await bench.coord(["watch", "urls", "--progress", "plain"])
        let workers = try await bench.workers(2)
        let found = try await expect(.servers, bench)
        #expect(found.report.figures.slotsFull > 50 && found.report.figures.answering > 50)
        // The cause may have been another one at the first lines.
        try await until { watch.stderr.contains(" limit=servers why=\"") }
        watch.signal(SIGINT)
        await watch.wait()
        try await until { try await bench.done(["status"]).stdout.contains("limited by the servers' answers") }
        let json = try await bench.done(["status", "urls", "--json"]).stdout
        #expect(json.contains(#""limit":{"cause":"servers","detail":""#), "\(json)")
        #expect(json.contains(#""option":"--max-concurrent-downloads""#), "\(json)")
        try await until {
            try await bench.done(["metrics"]).stdout.contains(
                #"prefetch_limit_seconds_total{queue="default",batch="urls",cause="servers"}"#)
        }
        let page = try await bench.done(["export", "--format", "html", "urls"]).stdout
        #expect(page.contains("What limited it"))
        try await bench.done(["pause", "--all"])
        _ = try await expect(.paused, bench)
        try await bench.done(["resume", "--all"])
        _ = try await expect(.servers, bench)
        await end(workers)
        // After their lease.
        _ = try await expect(.workers, bench)
    }

    @Test("Politeness: --max-per-host, --rate-per-host and Retry-After are told apart, each with its host")
    func politeness() async throws {
        for (options, reason) in [
            (["--max-per-host", "2"], HostWait.Reason.transfers), (["--rate-per-host", "3"], .rate), ([], .backOff),
        ] {
            let bench = try await FaultBench(appendOnly: false, delay: 0.2)
            if reason == .backOff { bench.origin.setFallback { _ in .busy(retryAfter: 60) } }
            try await bench.submit(600, "urls", options)
            let workers = try await bench.workers(1)
            var found: RunLimit?
            try await until {
                found = try await limit(bench)
                return found?.cause == .politeness && found?.report.figures.hostWaits.first?.reason == reason
            }
            #expect(found?.report.figures.hostWaits.first?.host.hasPrefix("127.0.0.1") == true, "\(reason)")
            await end(workers)
        }
    }

    @Test("The configured rate: --limit-rate holds all transfers back")
    func rate() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        let large = GeneratedImage.jpeg(seed: 9, width: 900, height: 600)
        bench.origin.setFallback { [large] _ in OriginResponse(body: large) }
        try await bench.submit(400)
        let workers = try await bench.workers(1, ["--limit-rate", "50K"])
        _ = try await expect(.rate, bench)
        await end(workers)
    }

    @Test("The list: its last URLs are in flight, and nothing is left to claim")
    func list() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        bench.origin.setFallback { _ in OriginResponse(fault: .stallBeforeHeader) }
        try await bench.submit(3)
        let workers = try await bench.workers(1)
        let found = try await expect(.list, bench)
        #expect(found.list == .queued)
        await end(workers)
    }

    @Test("Redis: each reply comes a quarter of a second late, and transfers have nothing to do meanwhile")
    func redis() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        try await bench.submit(2_000, "urls", ["--job-size", "1"])
        let proxy = FaultProxy(target: bench.redis.socketPath)
        proxy.arm(.delayReply(milliseconds: 250), every: 1)
        let workers = try await bench.workers(1, url: proxy.url)
        // On a machine that others use up its slowness would be theirs.
        var longest = 0
        try await until {
            guard var report = try await bench.queue.views.snapshot(newest: 5).workers.first?.value.report else {
                return false
            }
            (report.figures.machineBusy, longest) = (0, report.figures.redisLongest)
            return LimitCause.of(report, peers: 1, age: 60_000) == .redis
        }
        #expect(longest >= 250)
        await end(workers)
    }

    @Test("The resolver: it answers nothing, and all that could be fetched waits for its names")
    func resolver() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        let names = try OriginResolver { _ in .silence }
        let urls = (0..<300).map { "http://host\($0).test:\(bench.origin.port)/\($0).png\n" }
        bench.folder.write(Array(urls.joined().utf8), to: "names.txt")
        try await bench.done(["submit", bench.folder.path("names.txt"), "--name", "urls"])
        let workers = try await bench.workers(1, ["--dns-servers", names.place, "--ip", "4"])
        let found = try await expect(.resolver, bench)
        #expect((found.report.names?.waiting ?? 0) > 0 && found.report.transferring == 0)
        try await until {
            try await bench.done(["status"]).stdout.contains("limited by the resolver (--dns-servers)")
        }
        await end(workers)
    }

    @Test("The link: all transfers receive, a few bytes at a time")
    func link() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        let large = GeneratedImage.jpeg(seed: 9, width: 900, height: 600)
        bench.origin.setFallback { _ in OriginResponse(body: large, fault: .drip(bytes: 1024, seconds: 0.05)) }
        try await bench.submit(400)
        let workers = try await bench.workers(1)
        let found = try await expect(.link, bench)
        #expect(found.report.figures.slotsFull > 50 && found.report.figures.answering <= 50)
        await end(workers)
    }

    @Test("A local fault: too little room for the cache")
    func fault() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        try await bench.submit(400)
        let workers = try await bench.workers(1, ["--min-free", "9000000GB"])
        _ = try await expect(.fault, bench)
        try await until { try await bench.done(["status"]).stdout.contains("limited by a local fault") }
        await end(workers)
    }

    /// What the only worker would be told to be limited by if it had the whole machine to itself and used it up. Other tests use it too.
    private func limitOfFullMachine(_ bench: FaultBench) async throws -> LimitCause? {
        guard var report = try await bench.queue.views.snapshot(newest: 5).workers.first?.value.report,
            report.figures.checkCPU + report.figures.transferCPU > 5
        else { return nil }
        (report.figures.machineBusy, report.figures.cpu) = (100, 100 * report.figures.processors)
        return LimitCause.of(report, peers: 1, age: 60_000)
    }

    @Test("The processors, by checks: large images in small files, which are decoded")
    func checking() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        var large = GeneratedImage.jpeg(seed: 9, width: 1200, height: 900, quality: 20, progressive: true)
        // An empty DNL, for which libjpeg decides.
        large.insert(contentsOf: [0xFF, 0xDC, 0, 2], at: 2)
        bench.origin.setFallback { [large] _ in OriginResponse(body: large) }
        try await bench.submit(4_000, "urls", ["--validate", "decode", "--max-per-host", "0"])
        let workers = try await bench.workers(1)
        try await until { try await limitOfFullMachine(bench) == .checking }
        await end(workers)
    }

    @Test("The processors, by transfers: bodies in chunks of a byte, which are not looked at")
    func transfers() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        let picture = GeneratedImage.jpeg(seed: 9, width: 600, height: 400)
        var response = Array(
            "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
        for byte in picture { response += Array("1\r\n".utf8) + [byte] + Array("\r\n".utf8) }
        response += Array("0\r\n\r\n".utf8)
        bench.origin.setFallback { [response] _ in OriginResponse(fault: .raw(response)) }
        try await bench.submit(4_000, "urls", ["--validate", "none", "--max-per-host", "0"])
        let workers = try await bench.workers(1)
        try await until { try await limitOfFullMachine(bench) == .processor }
        await end(workers)
    }
}

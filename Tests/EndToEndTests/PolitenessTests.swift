import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing

/// What `run` and `prefetch-worker` ask of hosts, and how much at a time, by their options.
@Suite("Politeness by options", .timeLimit(.minutes(5)))
struct PolitenessTests: CommandSuite {
    private let folder = TemporaryDirectory()

    /// `prefetch-coord run` over URLs with two workers, to its end.
    private func run(_ urls: [String], _ options: [String], exit code: Int32) async throws -> String {
        folder.write(Array(urls.map { $0 + "\n" }.joined().utf8), to: "urls.txt")
        let words = ["run", folder.path("urls.txt"), "--cache", folder.path("cache"), "-n", "2", "--json", "--quiet"]
        let child = try await ran(words + ["--allow-net", "127.0.0.0/8"] + options, exits: code)
        return child.stdout
    }

    private let picture = GeneratedImage.png(seed: 3, width: 8, height: 8)

    @Test("--robots asks each site first and leaves alone what it forbids; without it nobody asks")
    func robots() async throws {
        let origin = try OriginServer()
        origin.setFallback { [picture] _ in OriginResponse(body: picture) }
        origin.route("/robots.txt", OriginResponse(body: Array("User-agent: *\nDisallow: /private/".utf8)))
        let urls = (0..<40).map { origin.url($0 % 2 == 0 ? "/public/\($0).png" : "/private/\($0).png") }
        let text = try await run(urls, ["--robots"], exit: 3)
        #expect(text.contains(#""downloaded":20,"#) && text.contains(#""refused":20,"#), "\(text)")
        // One worker asks for both.
        #expect(origin.requestCount("/robots.txt") == 1)
        #expect(origin.requests.allSatisfy { !$0.path.hasPrefix("/private/") })
        let asked = origin.requestCount("/robots.txt")
        let careless = try await run(urls, ["--name", "careless"], exit: 0)
        #expect(careless.contains(#""refused":0,"#), "\(careless)")
        #expect(origin.requestCount("/robots.txt") == asked)
    }

    @Test("An image that says noai is refused; --ignore-robots-tag and --own-host take it")
    func robotsTag() async throws {
        let origin = try OriginServer()
        origin.setFallback { [picture] request in
            let tag = request.path.hasPrefix("/mine/") ? [("X-Robots-Tag", "noai, noimageai")] : []
            return OriginResponse(headers: tag, body: picture)
        }
        let host = "pictures.test:\(origin.port)"
        let urls = (0..<20).map { "http://\(host)" + ($0 % 2 == 0 ? "/mine/\($0).png" : "/all/\($0).png") }
        let place = ["--connect-to", "\(host):127.0.0.1:\(origin.port)"]
        let text = try await run(urls, place, exit: 3)
        #expect(text.contains(#""downloaded":10,"#) && text.contains(#""refused":10,"#), "\(text)")
        let own = try await run(Array(urls[..<10]), place + ["--own-host", "*.test"], exit: 0)
        #expect(own.contains(#""downloaded":5,"hit":5,"#), "\(own)")
        let careless = try await run(urls, place + ["--name", "careless", "--ignore-robots-tag"], exit: 0)
        #expect(careless.contains(#""downloaded":5,"hit":15,"#), "\(careless)")
    }

    @Test("--limit-rate bounds what all workers of a run take together")
    func limitRate() async throws {
        let origin = try OriginServer()
        let large = GeneratedImage.jpeg(seed: 9, width: 900, height: 600)
        origin.setFallback { _ in OriginResponse(body: large) }
        let rate = 200 << 10
        let count = 600 * 1024 / large.count + 1
        let began = ContinuousClock.now
        let text = try await run((0..<count).map { origin.url("/\($0).jpg") }, ["--limit-rate", "200K"], exit: 0)
        #expect(text.contains(#""downloaded":\#(count),"#), "\(text)")
        // What each worker may take at once: a twentieth of a second's, and the buffer that comes on top.
        let early = 2 * (rate / 40 + (64 << 10))
        let least = Double(count * large.count - early) / Double(rate)
        #expect(least > 1 && ContinuousClock.now - began >= .seconds(least), "\(least)")
    }

    @Test(
        "--limit-rate-of-queue bounds what independent workers take together, and --robots has a site asked once by all of them"
    )
    func limitRateOfQueue() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        let large = GeneratedImage.jpeg(seed: 9, width: 900, height: 600)
        bench.origin.setFallback { _ in OriginResponse(body: large) }
        bench.origin.route("/robots.txt", OriginResponse(body: Array("User-agent: *\nDisallow: /private/".utf8)))
        let rate = 200 << 10
        let count = 600 * 1024 / large.count + 1
        try await bench.submit(count, "urls", ["--validate", "header", "--robots"])
        let began = ContinuousClock.now
        let workers = try await bench.workers(3, ["--limit-rate-of-queue", "200K"])
        try await bench.expectAllThere(count, workers: workers)
        // A buffer of each may come before its pieces do.
        let least = Double(count * large.count - 3 * (64 << 10)) / Double(rate)
        #expect(least > 1 && ContinuousClock.now - began >= .seconds(least), "\(least)")
        #expect(bench.origin.requestCount("/robots.txt") == 1)
    }

    @Test("Crawl-delay of robots.txt holds over three workers, also beside a faster --rate-per-host")
    func crawlDelay() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        bench.origin.route("/robots.txt", OriginResponse(body: Array("User-agent: *\nCrawl-delay: 0.1".utf8)))
        try await bench.submit(31, "urls", ["--robots", "--rate-per-host", "50"])
        let began = ContinuousClock.now
        let workers = try await bench.workers(3)
        try await bench.expectAllThere(31, workers: workers)
        // Thirty pauses between them, of which the last may be short.
        #expect(ContinuousClock.now - began >= .seconds(2.9))
        #expect(bench.origin.requestCount("/robots.txt") == 1 && bench.origin.requestCount() == 32)
    }

    @Test("--rate-per-host holds over four workers")
    func rate() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        let port = bench.origin.port
        let urls = (0..<61).map { "http://pictures.test:\(port)/\($0).png\n" }
        bench.folder.write(Array(urls.joined().utf8), to: "urls.txt")
        let words = ["submit", bench.folder.path("urls.txt"), "--name", "urls", "--job-size", "4", "--window", "all"]
        try await bench.done(words + ["--rate-per-host", "20"])
        let began = ContinuousClock.now
        let workers = try await bench.workers(4, ["--connect-to", "pictures.test:\(port):127.0.0.1:\(port)"])
        try await bench.expectAllThere(61, workers: workers)
        // Sixty pauses between them; without the others' knowledge it would be half as long or less.
        #expect(ContinuousClock.now - began >= .seconds(3))
        #expect(bench.origin.requestCount() == 61)
    }

    @Test(
        "Six transfers to a host over all workers unless told otherwise, stalled ones counted; a killed worker leaves its part"
    )
    func share() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        bench.origin.setFallback { _ in OriginResponse(fault: .stallBeforeHeader) }
        let port = bench.origin.port
        bench.folder.write(
            Array((0..<64).map { "http://pictures.test:\(port)/\($0).png\n" }.joined().utf8), to: "urls.txt")
        let words = [
            "submit", bench.folder.path("urls.txt"), "--name", "urls", "--job-size", "1", "--window", "all",
            "--timeout", "100s",
        ]
        // With a number a silent transfer would keep its slot of the worker.
        let options = ["--connect-to", "pictures.test:\(port):127.0.0.1:\(port)", "--max-concurrent-downloads", "auto"]
        let workers = try await bench.workers(3, options)
        try await until { try await bench.queue.workers.names().count == 3 }
        try await bench.done(words)
        await bench.origin.waitForRequests(6)
        func records() async throws -> [WorkerRecord] { try await bench.queue.workerRecords.all() }
        // Past the second after which a silent transfer gives its slot of the worker to another host's.
        try await until { try await stalled(bench) == 6 }
        #expect(bench.origin.requestCount() == 6)
        // What the one that has most of them leaves, the others get after its lease.
        let largest = try #require(try await records().max { $0.report.inFlight < $1.report.inFlight })
        let part = largest.report.inFlight
        let killed = try #require(workers.first { largest.id.hasSuffix(":\($0.pid)") })
        killed.signal(SIGKILL)
        _ = await killed.wait()
        await bench.origin.waitForRequests(6 + part)
        try await until { try await bench.queue.workers.names().count == 2 }
        #expect(bench.origin.requestCount() == 6 + part)
        for worker in workers where worker.pid != killed.pid {
            worker.signal(SIGKILL)
            _ = await worker.wait()
        }
    }

    /// Transfers of all workers that are alive but silent.
    private func stalled(_ bench: FaultBench) async throws -> Int {
        var sum = 0
        for name in try await bench.queue.workers.names() {
            sum += try await bench.redis("HGET", "\(bench.queue.keys.root):w:\(name)", "stalled").count ?? 0
        }
        return sum
    }

    @Test("--max-per-host of a batch holds over all workers, for literal addresses too")
    func limitOfBatch() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        bench.origin.setFallback { _ in OriginResponse(fault: .stallBeforeHeader) }
        let workers = try await bench.workers(2, ["--max-concurrent-downloads", "auto"])
        let list = bench.list(40)
        let limits = ["--max-per-host", "2", "--timeout", "100s"]
        try await bench.done(["submit", list, "--job-size", "1", "--window", "all"] + limits)
        await bench.origin.waitForRequests(2)
        try await until { try await stalled(bench) == 2 }
        #expect(bench.origin.requestCount() == 2)
        for worker in workers {
            worker.signal(SIGKILL)
            _ = await worker.wait()
        }
    }
}

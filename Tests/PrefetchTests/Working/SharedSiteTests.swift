import Origin
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("What workers share of sites and of their line", .timeLimit(.minutes(5)))
struct SharedSiteTests {
    private let picture = GeneratedImage.png(seed: 4, width: 12, height: 12)

    /// Workers that run together to their end; what each was first to settle.
    private func counts(of workers: [PrefetchWorker]) async -> [Int] {
        await withTaskGroup(of: Int.self) { group in
            for worker in workers { group.addTask { (try? await worker.run())?.finished ?? 0 } }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test(
        "One worker reads a site's robots.txt for all, also for those that come later, and also where it cannot be read",
        arguments: [true, false])
    func robots(isReadable: Bool) async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { [picture] request in
            guard request.path == "/robots.txt" else { return OriginResponse(body: picture, delay: 0.02) }
            // Long enough that all of them want it meanwhile.
            let rules = Array("User-agent: *\nDisallow: /private/".utf8)
            return OriginResponse(status: isReadable ? 200 : 500, body: rules, delay: 0.4)
        }
        let queue = try fixture.queue()
        let urls = (0..<90).map { fixture.origin.url("\($0 % 3 == 0 ? "/private" : "/public")/\($0).png") }
        let id = try await fixture.submit(urls, to: queue, jobSize: 1)
        let workers = try (0..<3).map { _ in
            try fixture.worker(configure: { $0.maxConcurrentDownloads = 4 }, downloads: { $0.asksRobots = true })
        }
        let shares = await counts(of: workers)
        #expect(shares.reduce(0, +) == 90, "\(shares)")
        let status = try #require(try await queue.batches.status(of: id))
        #expect(status.counts[.refused] == (isReadable ? 30 : 90) && status.counts.finished == 90)
        // Who could not read it has tried as often as for an image.
        let asked = isReadable ? 1 : 3
        #expect(fixture.origin.requestCount("/robots.txt") == asked)
        #expect(fixture.origin.requests.allSatisfy { !$0.path.hasPrefix("/private/") })
        let later = try await fixture.submit([fixture.origin.url("/private/x.png")], to: queue)
        _ = try await fixture.worker(downloads: { $0.asksRobots = true }).run()
        #expect(try await queue.batches.status(of: later)?.counts[.refused] == 1)
        #expect(fixture.origin.requestCount("/robots.txt") == asked)
        let site = "http://127.0.0.1:\(fixture.origin.port)"
        let key = queue.keys.robots(site, agent: "prefetch")
        let left = try await queue.connection.command(["TTL", RedisArgument(key)]).int ?? 0
        #expect(isReadable ? (3000...3600).contains(left) : (1...60).contains(left), "\(left)")
    }

    @Test("Of those that ask about a site one reads it; what says nothing lets the next one read it")
    func asking() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        let site = RobotsSite(site: "https://a.test:443", agent: "Prefetch")
        let other = RobotsSite(site: "https://b.test:443", agent: "Prefetch")
        #expect(try await queue.hosts.robots(of: [site], worker: "a") == [.ask])
        #expect(try await queue.hosts.robots(of: [site, other], worker: "b") == [.wait, .ask])
        // A reply that was lost is asked for again.
        #expect(try await queue.hosts.robots(of: [site, other], worker: "a") == [.ask, .wait])
        try await queue.hosts.noteRobots([RobotsCopy(site: site, text: "", lifetime: 0)])
        #expect(try await queue.hosts.robots(of: [site], worker: "b") == [.ask])
        try await queue.hosts.noteRobots([RobotsCopy(site: site, text: "!HTTP 500", lifetime: 60)])
        guard case .known(let text, let remaining) = try await queue.hosts.robots(of: [site], worker: "a")[0] else {
            Issue.record("it is not known")
            return
        }
        #expect(text == "!HTTP 500" && remaining > 50 && remaining <= 60)
        // Who found nothing in the end takes nothing away from those that did.
        try await queue.hosts.noteRobots([RobotsCopy(site: site, text: "", lifetime: 0)])
        #expect(try await queue.hosts.robots(of: [site], worker: "c") != [.ask])
        // Another program has rules of its own.
        #expect(try await queue.hosts.robots(of: [RobotsSite(site: site.site, agent: "other")], worker: "c") == [.ask])
    }

    @Test("All robots.txt that a queue keeps take 8 MiB an hour; of what has no room each worker reads its own")
    func kept() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        func site(_ number: Int) -> RobotsSite { RobotsSite(site: "https://h\(number).test:443", agent: "prefetch") }
        let text = String(repeating: "x", count: 63_000)
        for start in stride(from: 0, to: 400, by: 20) {
            let sites = (start..<start + 20).map { site($0) }
            #expect(try await queue.hosts.robots(of: sites, worker: "a") == Array(repeating: .ask, count: 20))
            try await queue.hosts.noteRobots(sites.map { RobotsCopy(site: $0, text: text, lifetime: 1e9) })
        }
        var known = 0
        var bytes = 0
        for number in 0..<400 {
            let key = RedisArgument(queue.keys.robots(site(number).site, agent: "prefetch"))
            let length = try await queue.connection.command(["STRLEN", key]).int ?? 0
            bytes += length
            let left = try await queue.connection.command(["TTL", key]).int ?? 0
            #expect(length == 0 || (1...3600).contains(left))
            if length > 0 { known += 1 }
        }
        #expect(bytes <= 8 << 20 && known == (8 << 20) / (63_000 + 100 + 45), "\(bytes) \(known)")
        #expect(try await queue.hosts.robots(of: [site(399)], worker: "b") == [.ask])
        guard case .known = try await queue.hosts.robots(of: [site(0)], worker: "b")[0] else {
            Issue.record("the first one is not known")
            return
        }
        let sum = RedisArgument(queue.keys.root + ":robots:sum")
        #expect((1...3600).contains(try await queue.connection.command(["TTL", sum]).int ?? 0))
    }

    @Test("Several workers together take no more bytes a second than the queue may")
    func limitRate() async throws {
        let fixture = try await WorkerFixture()
        let large = GeneratedImage.jpeg(seed: 9, width: 900, height: 600)
        fixture.origin.setFallback { _ in OriginResponse(body: large) }
        let queue = try fixture.queue()
        let rate = 200 << 10
        let count = 800 * 1024 / large.count + 1
        let id = try await fixture.submit((0..<count).map { fixture.origin.url("/\($0).jpg") }, to: queue, jobSize: 1)
        let workers = try (0..<3).map { _ in
            try fixture.worker(configure: {
                $0.limitRateOfQueue = rate
                $0.maxConcurrentDownloads = 2
            })
        }
        let began = ContinuousClock.now
        let shares = await counts(of: workers)
        #expect(try await queue.batches.status(of: id)?.counts[.downloaded] == count)
        #expect(shares.filter { $0 > 0 }.count >= 2, "\(shares)")
        // A buffer of each may come before its pieces do.
        let least = Double(count * large.count - 3 * (64 << 10)) / Double(rate)
        #expect(least > 2 && ContinuousClock.now - began >= .seconds(least), "\(least)")
    }

    @Test("What one worker finds out of a host that grows slow others keep to")
    func slow() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { [picture] request in
            OriginResponse(body: picture, delay: request.path.hasPrefix("/fast/") ? 0 : 2.5)
        }
        let queue = try fixture.queue()
        let first = try fixture.worker(
            freesSilent: false, configure: { $0.maxConcurrentDownloads = 8 }, downloads: { $0.hosts.backsOff = true })
        let second = try fixture.worker(
            freesSilent: false,
            configure: {
                $0.burst = false
                $0.maxConcurrentDownloads = 16
            }, downloads: { $0.hosts.backsOff = true })
        let urls =
            (0..<8).map { fixture.origin.url("/fast/\($0).png") } + (0..<24).map { fixture.origin.url("/a/\($0).png") }
        _ = try await fixture.submit(urls, to: queue, jobSize: 64)
        let run = Task { try await first.run() }
        try await until { try await !queue.hosts.troubled().isEmpty }
        let host = try #require(try await queue.hosts.troubled().first)
        #expect(host.state == .slow && (2...6).contains(host.failures), "\(host)")
        let latency = try #require(host.news.latency)
        #expect(latency.now > 4 * latency.best && host.reason == latency.text && host.news.error == nil)
        let other = Task { try await second.run() }
        #expect(await becomes(within: .seconds(60)) { await second.hostsVersion != nil })
        let more = (0..<16).map { fixture.origin.url("/b/\($0).png") }
        _ = try await fixture.submit(more, to: queue, jobSize: 64)
        #expect(await becomes(within: .seconds(60)) { fixture.origin.requests.contains { $0.path.hasPrefix("/b/") } })
        let downloader = second.context.manager.downloader
        #expect(
            await becomes(within: .seconds(60)) {
                await downloader.states(of: Set(more)).values.contains {
                    $0.phase == .waitingForHost && $0.reason.hasPrefix("at most ")
                }
            })
        let states = await downloader.states(of: Set(more)).values
        // Without what the first one knows all sixteen would be on their way.
        #expect(states.filter { $0.phase == .transferring || $0.phase == .stalled }.count <= host.failures, "\(states)")
        for worker in [first, second] { worker.stop() }
        _ = try await (run.value, other.value)
    }
}

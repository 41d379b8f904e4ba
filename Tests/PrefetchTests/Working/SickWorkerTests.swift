import Origin
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch
@testable import Queue

/// Workers whose machine has no network, resolver or proxy, or one whose portal answers for every host.
@Suite("A worker whose network is out of order", .timeLimit(.minutes(5)))
struct SickWorkerTests {
    enum Sickness: String, Sendable, CaseIterable {
        /// The resolver answers nothing.
        case resolver
        /// Every connect is refused.
        case refused
        /// Every connect leads to a server that has the same page for every host.
        case portal
        /// Connections are made, and nothing comes.
        case silence
        case proxy
    }

    /// What happened to a worker.
    private typealias Log = Locked<[PrefetchWorker.Event]>

    private static let picture = GeneratedImage.png(seed: 4, width: 12, height: 12)
    private static let page = Array("<!DOCTYPE html><html><title>Welcome</title>".utf8)
    /// Long enough for machines with much else to do.
    private static let timeout = Duration.seconds(60)

    private func comesTrue(_ condition: () async throws -> Bool) async rethrows -> Bool {
        try await becomes(within: Self.timeout, condition)
    }

    private func paused(_ log: Log) -> [String] {
        log.withLock { events in
            events.compactMap { if case .paused(let text) = $0 { text } else { nil } }
        }
    }

    private func warnings(_ log: Log) -> [String] {
        log.withLock { events in
            events.compactMap { if case .warning(let text) = $0 { text } else { nil } }
        }
    }

    private func listedCount(_ queue: PrefetchQueue) async throws -> Int {
        try await queue.connection.command(["SCARD", RedisArgument(queue.keys.failed)]).int ?? -1
    }

    @Test(
        "takes no list with it: the jobs go back, others end them, and nothing is listed", arguments: Sickness.allCases)
    func sick(_ sickness: Sickness) async throws {
        let fixture = try await WorkerFixture()
        let origin = try OriginServer(address: "0.0.0.0")
        origin.setFallback { _ in OriginResponse(body: Self.picture, delay: 0.005) }
        let portal = try OriginServer()
        portal.setFallback { _ in
            sickness == .silence
                ? OriginResponse(fault: .stallBeforeHeader)
                : OriginResponse(headers: [("Content-Type", "text/html")], body: Self.page)
        }
        let gone = try OriginServer()
        await gone.stop()
        let (silent, names) = (
            try OriginResolver { _ in .silence }, try OriginResolver { .addresses(["127.0.0.1"], to: $0) }
        )
        let isNamed = sickness == .resolver
        let urls = (0..<480).map { index in
            let host = isNamed ? "host\(index % 60).test" : "127.0.0.\(index % 60 + 1)"
            return "http://\(host):\(origin.port)/\(index).png"
        }
        let queue = try fixture.queue()
        let log = Log([])
        func worker(_ name: String, isSick: Bool) throws -> PrefetchWorker {
            try fixture.worker(
                cache: name,
                configure: {
                    ($0.name, $0.lease, $0.burst) = (name, 2000, false)
                    $0.maxConcurrentDownloads = isSick ? 16 : 4
                    if isSick { $0.onEvent = { event in log.withLock { $0.append(event) } } }
                },
                downloads: { downloads in
                    downloads.ipVersion = .v4
                    downloads.dnsServers = [isSick && isNamed ? silent.place : names.place]
                    (downloads.connectTimeout, downloads.downloadTimeout) = (2, 30)
                    guard isSick else { return }
                    switch sickness {
                    case .resolver: break
                    case .refused: downloads.connectTo = ["::127.0.0.1:\(gone.port)"]
                    case .portal, .silence: downloads.connectTo = ["::127.0.0.1:\(portal.port)"]
                    case .proxy: downloads.proxy = "http://127.0.0.1:\(gone.port)"
                    }
                })
        }
        let sick = try worker("sick", isSick: true)
        let healthy = try worker("healthy", isSick: false)
        let runs = [sick, healthy].map { worker in Task { try await worker.run() } }
        // A worker that is alone is not to be suspected.
        #expect(try await comesTrue { try await queue.workers.names().count == 2 })
        let id = try await fixture.submit(urls, to: queue, jobSize: 16)
        #expect(try await comesTrue { try await queue.batches.status(of: id)?.state == .done })
        let status = try #require(try await queue.batches.status(of: id))
        #expect(status.counts[.downloaded] == urls.count, "\(status.counts)")
        #expect(try await listedCount(queue) == 0)
        let said = paused(log)
        #expect(said.count >= 1, "\(said)")
        let word =
            switch sickness {
            case .resolver: "the resolver answers nothing"
            case .refused, .silence: "no network: other workers reach http://"
            case .portal: "a portal answers for every host"
            case .proxy: "the proxy http://127.0.0.1:\(gone.port) cannot be used"
            }
        #expect(said.first?.hasPrefix(word) == true, "\(said)")
        for worker in [sick, healthy] { worker.stop() }
        for run in runs { _ = try await run.value }
    }

    @Test(
        "Alone behind a portal, what ends so is not listed and is said once; the same list is fetched when the portal is gone"
    )
    func portal() async throws {
        let fixture = try await WorkerFixture()
        let origin = try OriginServer(address: "0.0.0.0")
        origin.setFallback { _ in OriginResponse(body: Self.picture) }
        let portal = try OriginServer()
        // Each host has another page, and all are found at one place.
        portal.setFallback { request in
            request.path.hasPrefix("/login")
                ? OriginResponse(
                    headers: [("Content-Type", "text/html")],
                    body: Self.page + [UInt8](repeating: 0x78, count: request.path.utf8.reduce(0) { $0 + Int($1) } % 97)
                )
                : .redirect(to: "http://127.0.0.200:\(origin.port)/login?from=\(request.header("Host") ?? "")")
        }
        let urls = (0..<100).map { "http://127.0.0.\($0 % 20 + 1):\(origin.port)/\($0).png" }
        let queue = try fixture.queue()
        let id = try await fixture.submit(urls, to: queue)
        let log = Log([])
        let behind = try fixture.worker(
            configure: { $0.onEvent = { event in log.withLock { $0.append(event) } } },
            downloads: { $0.connectTo = ["::127.0.0.1:\(portal.port)"] })
        #expect(try await behind.run()[.badImage] == 100)
        #expect(try await queue.batches.status(of: id)?.counts[.badImage] == 100)
        #expect(try await listedCount(queue) == 0)
        let said = warnings(log)
        #expect(
            said.count == 1 && said[0].hasPrefix("a portal answers for every host (leads to 127.0.0.200/login)"),
            "\(said)")
        let again = try await fixture.submit(urls, to: queue)
        #expect(try await fixture.worker().run()[.downloaded] == 100)
        #expect(try await queue.batches.status(of: again)?.counts[.downloaded] == 100)
    }

    @Test("Dead hosts and parked domains among good ones make no worker suspect: they are told, and listed as ever")
    func dead() async throws {
        let fixture = try await WorkerFixture()
        let origin = try OriginServer(address: "0.0.0.0")
        origin.setFallback { request in
            OriginResponse(body: request.path.hasPrefix("/parked") ? Self.page : Self.picture)
        }
        let gone = try OriginServer()
        await gone.stop()
        // Of ten: four good ones, four dead, and two parked.
        let urls = (0..<500).map { index in
            let host = "127.0.0.\(index % 50 + 1)"
            return switch index % 10 {
            case 0..<4: "http://\(host):\(origin.port)/\(index).png"
            case 4..<8: "http://\(host):\(gone.port)/\(index).png"
            default: "http://\(host):\(origin.port)/parked/\(index).png"
            }
        }
        let queue = try fixture.queue()
        let log = Log([])
        let workers = try ["one", "two"].map { name in
            try fixture.worker(
                cache: name,
                configure: {
                    ($0.name, $0.lease, $0.burst) = (name, 2000, false)
                    $0.onEvent = { event in log.withLock { $0.append(event) } }
                },
                downloads: { $0.hosts.failuresInARow = nil })
        }
        let runs = workers.map { worker in Task { try await worker.run() } }
        #expect(try await comesTrue { try await queue.workers.names().count == 2 })
        let id = try await fixture.submit(urls, to: queue)
        #expect(try await comesTrue { try await queue.batches.status(of: id)?.state == .done })
        let status = try #require(try await queue.batches.status(of: id))
        #expect(status.counts[.downloaded] == 200 && status.counts[.connect] == 200 && status.counts[.badImage] == 100)
        #expect(try await listedCount(queue) == 100)
        #expect(paused(log) == [] && warnings(log) == [])
        for worker in workers { worker.stop() }
        for run in runs { _ = try await run.value }
    }

    @Test("A proxy that cannot be reached ends no URL: the worker names it, and goes on when it is there")
    func proxy() async throws {
        let fixture = try await WorkerFixture()
        let gone = try OriginServer()
        let port = gone.port
        await gone.stop()
        let urls = (0..<40).map { "http://host\($0 % 4).example/\($0).png" }
        let queue = try fixture.queue()
        let id = try await fixture.submit(urls, to: queue)
        let log = Log([])
        let worker = try fixture.worker(
            configure: { $0.onEvent = { event in log.withLock { $0.append(event) } } },
            downloads: { $0.proxy = "http://me:secret@127.0.0.1:\(port)" })
        let run = Task { try await worker.run() }
        #expect(await comesTrue { !paused(log).isEmpty })
        let text = try #require(paused(log).first)
        #expect(text.hasPrefix("the proxy http://me:***@127.0.0.1:\(port) cannot be used: "), "\(text)")
        #expect(text.hasSuffix("start it, or name another one: --proxy URL"))
        #expect(try await comesTrue { try await queue.workerRecords.all().first?.report.trouble == text })
        #expect(try await queue.batches.status(of: id)?.counts.finished == 0)
        let proxy = try OriginServer(port: port)
        proxy.setFallback { _ in OriginResponse(body: Self.picture) }
        #expect(try await run.value[.downloaded] == 40)
        #expect(log.withLock { $0.contains(.resumed) })
        #expect(proxy.requests.allSatisfy { $0.path.hasPrefix("http://host") })
    }

    @Test("A witness that the worker's own rules close says nothing of its network")
    func closed() async throws {
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(body: Self.picture) }
        let loopback = try #require(CIDR("127.0.0.0/8"))
        for (allow, answer, finding) in [
            ([], WitnessProbe.Answer.refused, WitnessProbe.Finding.nothing), ([loopback], .answered, .answer),
        ] {
            var downloads = ImageDownloader.Configuration()
            downloads.addressPolicy = AddressPolicy(allow: allow)
            let probe = WitnessProbe(try ImageDownloader(configuration: downloads))
            let witness = QueueHosts.Witness(url: origin.url("/1.png"))
            #expect(await probe.ask(witness) == answer)
            #expect(await probe.ask(any: [witness]) == finding)
            #expect(await probe.ask(any: []) == .nothing)
        }
        await origin.stop()
        var downloads = ImageDownloader.Configuration()
        downloads.addressPolicy = AddressPolicy(allow: [loopback])
        let probe = WitnessProbe(try ImageDownloader(configuration: downloads))
        #expect(await probe.ask(any: [QueueHosts.Witness(url: origin.url("/1.png"))]) == .silence)
    }

    @Test("What a third worker fails at is reported, whoever is to blame")
    func third() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2])
        try await f.join("a", "b", "c")
        for (worker, doubts) in [("a", 0), ("b", 1), ("b", 1), ("a", 1), ("c", 2)] {
            let sequence = Int.random(in: 1...1_000_000)
            let claims = try await f.claim(worker, sequence)
            let claim = try #require(claims.first)
            #expect(claim.doubts == doubts, "\(worker)")
            // Sent again after a lost reply.
            #expect(try await f.claim(worker, sequence) == claims)
            guard worker != "c" else { break }
            let names = [claim.name]
            #expect(
                try await f.queue.jobs.release(worker: worker, jobs: names, doubted: Set(texts: names), leaving: false)
                    == 1)
        }
        #expect(try await f.findings("b") == [])
        let job = try #require(QueueFixture.jobs("b", sizes: [2]).first)
        try await f.finish(job, "c", .connect)
        #expect(try await f.redis("EXISTS", f.keys.tries("b")).int == 0)
        #expect(try await f.findings("b") == [])
    }

    @Test("Witnesses are those of the last minute, newest first, and 64 at most")
    func witnesses() async throws {
        let f = try await QueueFixture()
        try await f.join("a", "b")
        #expect(try await f.queue.hosts.witnesses() == (2, []))
        _ = try await f.queue.hosts.witnesses(adding: [.init(url: "http://old.example/a b", rate: 2.5)])
        try await f.redis("ZINCRBY", f.keys.witnesses, "-30000", "2.5 http://old.example/a b")
        let long = QueueHosts.Witness(url: "http://h/" + String(repeating: "x", count: 3000))
        let found = try await f.queue.hosts.witnesses(adding: [.init(url: "http://new.example/"), long])
        #expect(found.workers == 2 && found.witnesses.map(\.url) == ["http://new.example/", "http://old.example/a b"])
        #expect(found.witnesses.map(\.rate) == [nil, 2.5])
        #expect((30_000..<60_000).contains(found.witnesses[1].age) && found.witnesses[0].age < 20_000)
        try await f.redis("ZINCRBY", f.keys.witnesses, "-40000", "2.5 http://old.example/a b")
        #expect(try await f.queue.hosts.witnesses().witnesses.count == 1)
        for index in 0..<100 {
            _ = try await f.queue.hosts.witnesses(adding: [.init(url: "http://h\(index)/")])
        }
        #expect(try await f.redis("ZCARD", f.keys.witnesses).int == 64)
        #expect((1...60_000).contains(try await f.redis("PTTL", f.keys.witnesses).int ?? 0))
        #expect(try await f.queue.hosts.witnesses(most: 2).witnesses.count == 2)
    }

    @Test("A page is told by what it says, without digits and URLs; an image that is broken is none")
    func pages() {
        func mark(_ text: String) -> PageMark { PageMark(Array(text.utf8)) }
        let page = mark("<a href=\"http://a.example/1\">no 1 at 12:41</a>")
        #expect(page == mark("<a href=\"http://b.example/25/x\">no 2 at 9:05</a>"))
        #expect(page != mark("<a href=\"http://b.example/25\">nr 2 at 9:05</a>"))
        #expect(mark("a/b") != mark("a/c") && mark("a: b") != mark("a: c"))
        #expect(WebImageError(.badImageData, "").isPage == false)
        #expect(WebImageError(.badImageData, "").mayBeLocal == false)
        for code: WebImageError.Code in [.cannotConnectToHost, .cannotFindHost, .secureConnectionFailed, .timedOut] {
            #expect(WebImageError(code, "").mayBeLocal)
        }
        #expect(!WebImageError(.invalidDownloadStatusCode, "", httpStatus: 503).mayBeLocal)
    }
}

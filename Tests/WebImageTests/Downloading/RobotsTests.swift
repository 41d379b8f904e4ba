import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("What sites ask of programs", .timeLimit(.minutes(5)))
struct RobotsTests {
    @Test(
        "The longest rule of our own groups decides (RFC 9309)",
        arguments: [
            ("User-agent: *\nDisallow: /", "/a.jpg", false), ("User-agent: *\nDisallow:", "/a.jpg", true),
            ("", "/a.jpg", true), ("garbage\n\u{0}\u{1}: x", "/a.jpg", true),
            ("User-agent: *\nDisallow: /\nUser-agent: Prefetch\nAllow: /", "/a.jpg", true),
            ("User-agent: *\nAllow: /\nUser-agent: PREFETCH/1.0\nDisallow: /", "/a.jpg", false),
            ("User-agent: prefetchbot\nDisallow: /", "/a.jpg", true),
            ("user-agent: x\nuser-agent: prefetch\ndisallow: /p", "/p/a", false),
            ("User-agent: prefetch\nDisallow: /a\n\nUser-agent: prefetch\nDisallow: /b", "/a/1", false),
            ("User-agent: prefetch\nDisallow: /a\n\nUser-agent: prefetch\nDisallow: /b", "/b/1", false),
            ("User-agent: *\nDisallow: /p\nAllow: /p/q", "/p/q/a.jpg", true),
            ("User-agent: *\nAllow: /p\nDisallow: /p", "/p", true),
            ("User-agent: *\nDisallow: /*.gif$", "/x/y.gif", false),
            ("User-agent: *\nDisallow: /*.gif$", "/x/y.gif?a", true),
            ("User-agent: *\nDisallow: /a*b*c", "/axxbxxbyyc/1", false),
            ("User-agent: *\nDisallow: /a*b*c", "/axxcxxb", true),
            ("User-agent: *\nDisallow: /%7ejoe/", "/~joe/i.jpg", false),
            ("User-agent: *\nDisallow: /ä", "/%c3%a4", false),
            ("User-agent: *\nDisallow: /a%2fb", "/a/b", true), ("User-agent: * # all\rDisallow: /x # no", "/x", false),
            ("\u{FEFF}User-agent: *\r\nDisallow: /", "/robots.txt", true),
            ("\u{FEFF}User-agent: *\r\nDisallow: /", "/other", false),
            (
                "User-agent: *\nDisallow: /" + String(repeating: "*a", count: 60),
                "/" + String(repeating: "a", count: 59), true
            ),
        ])
    func rules(text: String, target: String, isAllowed: Bool) {
        let rules = RobotsRules(text: text, agent: "prefetch")
        #expect(rules.verdict(on: target) == (isAllowed ? .allowed : .disallowed))
        // As others are told.
        #expect(RobotsRules(text: rules.text, agent: "prefetch") == rules)
    }

    @Test(
        "Crawl-delay of the group that applies is the pause between requests, bounded",
        arguments: [
            ("User-agent: *\nCrawl-delay: 2", 2), ("User-agent: *\ncrawl-delay : 0.5 # s", 0.5), ("", nil),
            ("User-agent: *\nCrawl-delay: 0", nil), ("User-agent: *\nCrawl-delay: -3", nil),
            ("User-agent: *\nCrawl-delay: 1e9", 60), ("User-agent: *\nCrawl-delay: inf", nil),
            ("User-agent: *\nCrawl-delay: nan", nil), ("User-agent: *\nCrawl-delay: ten", nil), ("Crawl-delay: 3", nil),
            ("User-agent: *\nCrawl-delay: 9\nUser-agent: prefetch\nCrawl-delay: 1", 1),
            ("User-agent: *\nCrawl-delay: 9\nUser-agent: prefetch\nDisallow:", nil),
            ("User-agent: bingbot\nCrawl-delay: 10\n\nUser-agent: *\nDisallow: /x", nil),
            ("User-agent: *\nUser-agent: other\nCrawl-delay: 4\nDisallow: /x", 4),
            ("User-agent: *\nCrawl-delay: 1\nCrawl-delay: 3\nCrawl-delay: 2", 3),
        ] as [(String, Double?)])
    func crawlDelay(text: String, seconds: Double?) {
        let rules = RobotsRules(text: text, agent: "prefetch")
        #expect(rules.delay == seconds)
        #expect(RobotsRules(text: rules.text, agent: "prefetch") == rules)
    }

    @Test("Crawl-delay spaces the requests of one process, and a slower rate of the host does where there is one")
    func delays() async throws {
        let server = try OriginServer()
        server.route("/robots.txt", OriginResponse(body: Array("User-agent: *\nCrawl-delay: 0.1".utf8)))
        server.setFallback { _ in OriginResponse(body: [1]) }
        for (rate, pause) in [(nil, 0.1), (100, 0.1), (5, 0.2)] as [(Double?, Double)] {
            let downloader = try makeDownloader {
                $0.asksRobots = true
                $0.hosts.requestsPerSecond = rate
            }
            let began = MonotonicClock.now
            await withTaskGroup(of: WebImageError?.self) { group in
                for number in 0..<6 { group.addTask { await downloader.failure(server.url("/\(number)")) } }
                for await error in group { #expect(error == nil) }
            }
            // A request may be late by one pause, and the next in time.
            #expect(MonotonicClock.now - began >= 4 * pause, "\(String(describing: rate))")
        }
    }

    @Test(
        "X-Robots-Tag concerns us where it names nobody or us",
        arguments: [
            (["noai"], "noai"), (["index, NoImageAI"], "noimageai"), (["otherbot: noindex"], nil),
            (["prefetch: noindex"], "noindex"), (["nofollow", "noindex"], "noindex"), (["none"], "none"), ([], nil),
            (["unavailable_after: 25 Jun 2030 15:00:00 PST, all"], nil), (["otherbot: noindex, noai"], nil),
            (["max-snippet: 5, NoML"], "noml"), (["otherbot: none"], nil),
            (["max-snippet: 5, noimageindex"], "noimageindex"),
            (["unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noai"], "noai"),
            (["unavailable_after: 25 Jun 2010 15:00:00 PST"], nil),
            (["unavailable_after: 2010-06-25T15:00:00Z, noai"], "noai"),
            (["noai;noimageai"], "noai"), (["index noimageai"], "noimageai"), (["\"noai\""], "noai"),
            (["'noai', x"], "noai"),
            (["index,\tnoai"], "noai"), (["notranslate , NOAI , x"], "noai"), (["PREFETCH : noai"], "noai"),
            (["otherbot: noai; prefetch: noindex"], "noindex"), (["otherbot: noai prefetch: noindex"], "noindex"),
            (["googlebot : nofollow, noindex"], nil), (["googlebot: nofollow", "noai"], "noai"), (["*: noai"], "noai"),
            (["robots: noai"], "noai"), (["prefetch: all, otherbot: noai"], nil),
            (["max-image-preview: none"], nil), (["max-image-preview:none, max-snippet:0"], nil),
            (["max-snippet:0, noindex"], "noindex"), (["noaiart, noindexifembedded, indexifembedded"], nil),
            ([""], nil), ([":"], nil), ([": noai"], "noai"), (["noai:"], nil), ([",;, noai"], "noai"),
        ] as [([String], String?)])
    func tags(lines: [String], directive: String?) {
        #expect(RobotsTag.refusal(of: lines, agent: "prefetch") == directive)
    }

    @Test(
        "robots.txt is read once a site, before all else, also where a redirect leads; what it forbids is refused unasked"
    )
    func asks() async throws {
        let (server, other) = (try OriginServer(), try OriginServer())
        server.route("/robots.txt", OriginResponse(body: Array("User-agent: *\nDisallow: /private/".utf8)))
        other.route("/robots.txt", OriginResponse(body: Array("User-agent: *\nDisallow: /".utf8)))
        server.route("/moved", .redirect(to: other.url("/x")))
        server.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader { $0.asksRobots = true }
        let errors = await withTaskGroup(of: (Int, WebImageError?).self) { group in
            for index in 0..<20 {
                let path = index % 2 == 0 ? "/private/\(index)" : "/public/\(index)"
                group.addTask { (index, await downloader.failure(server.url(path))) }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1?.message ?? "" }
        }
        for index in 0..<20 {
            #expect(errors[index] == (index % 2 == 0 ? "robots.txt of 127.0.0.1 does not allow it" : ""))
        }
        #expect(server.requests.first?.path == "/robots.txt")
        #expect(server.requestCount("/robots.txt") == 1 && server.requestCount() == 11)
        let moved = await downloader.failure(server.url("/moved"))
        #expect(moved?.outcome == .refused && moved?.tries == 1)
        #expect(other.requests.map(\.path) == ["/robots.txt"])
    }

    @Test(
        "A site without the file allows all, one that cannot give it nothing",
        arguments: [(404, true), (403, true), (500, false), (503, false), (429, false)])
    func unreadable(status: Int, isAllowed: Bool) async throws {
        let server = try OriginServer()
        server.route("/robots.txt", OriginResponse(status: status))
        server.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader { $0.asksRobots = true }
        let error = await downloader.failure(server.url("/a"))
        #expect(error?.outcome == (isAllowed ? nil : .refused))
        if !isAllowed { #expect(error?.message == "robots.txt of 127.0.0.1 cannot be read: HTTP \(status)") }
    }

    @Test("Where nobody answers for robots.txt the request says why itself; a cancelled one leaves nothing behind")
    func unreachable() async throws {
        let closed = try ClosedPort()
        let downloader = try makeDownloader { $0.asksRobots = true }
        let error = await downloader.failure("http://127.0.0.1:\(closed.port)/a")
        #expect(error?.outcome == .connect)
        let server = try OriginServer()
        server.route("/robots.txt", OriginResponse(body: [], fault: .stallBeforeHeader))
        let task = Task { try await downloader.download(server.url("/a")) }
        await server.waitForRequests(1)
        let url = server.url("/a")
        #expect(await downloader.states(of: [url])[url]?.reason == "its robots.txt")
        task.cancel()
        await #expect(throws: WebImageError.self) { try await task.value }
        server.release("/robots.txt")
        try await until { await downloader.currentDownloadCount == 0 }
        #expect(server.requestCount() == 1)
    }

    @Test(
        "X-Robots-Tag is obeyed where that is asked for, but not by hosts of one's own",
        arguments: [
            (true, [], true), (false, [], false), (true, ["other.test", "*.pictures.test", "*.test.pictures"], true),
            (true, ["a.pictures.test"], false), (true, ["*.pictures.test"], false), (true, ["*.test"], false),
        ] as [(Bool, [String], Bool)])
    func tag(isRespected: Bool, own: [String], isRefused: Bool) async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(headers: [("X-Robots-Tag", "noai")], body: pseudoImage(5000)) }
        let host = own.first == "other.test" ? "pictures.test" : "a.pictures.test"
        let downloader = try makeDownloader {
            $0.respectsRobotsTag = isRespected
            $0.ownHosts = own
            $0.resolve = ["\(host):\(server.port):127.0.0.1"]
        }
        let error = await downloader.failure("http://\(host):\(server.port)/")
        #expect(error?.outcome == (isRefused ? .refused : nil))
        if isRefused {
            #expect(error?.message.hasPrefix("X-Robots-Tag: noai; ") == true && error?.tries == 1)
        }
        // A literal address that was opened is a server of one's own.
        #expect(await downloader.failure(server.url("/")) == nil)
    }

    @Test(
        "Bodies come no faster than the limit, large ones and many small ones, and nothing is cut or taken for silence")
    func bandwidth() async throws {
        let server = try OriginServer()
        server.route("/large", OriginResponse(body: pseudoImage(600_000)))
        server.setFallback { _ in OriginResponse(body: pseudoImage(20_000)) }
        let downloader = try makeDownloader {
            $0.limitRate = 1_000_000
            $0.downloadTimeout = 5
            $0.lowSpeedTime = 0.6
            $0.lowSpeedLimit = 900_000
            $0.maxTries = 1
        }
        let began = MonotonicClock.now
        let sum = try await withThrowingTaskGroup(of: Int.self) { group in
            group.addTask { try await downloader.download(server.url("/large"), options: .uninspected).body.count }
            for index in 0..<40 {
                group.addTask {
                    try await downloader.download(server.url("/\(index)"), options: .uninspected).body.count
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(sum == 1_400_000)
        // What was saved up before the first byte, and one buffer that came too early.
        let least = (1_400_000 - 50_000 - 65_536) / 1_000_000.0
        #expect(MonotonicClock.now - began >= least)
    }
}

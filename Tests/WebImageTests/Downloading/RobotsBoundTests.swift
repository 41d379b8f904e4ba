import Origin
import TestSupport
import Testing

@testable import WebImage

/// What a site's robots.txt may cost: steps, rules and bytes, not times.
@Suite("Bounds of robots.txt", .timeLimit(.minutes(5)))
struct RobotsBoundTests {
    private func rules(_ lines: some Sequence<String>) -> RobotsRules {
        RobotsRules(text: "User-agent: *\n" + lines.joined(separator: "\n"), agent: "prefetch")
    }

    @Test(
        "A pattern looks at each byte of a path once, however many stars it has",
        arguments: [
            "/*" + String(repeating: "a", count: 2_000) + "b", "/" + String(repeating: "*a", count: 1_000) + "*b",
            "/" + String(repeating: "*aa", count: 600) + "*b", "*" + String(repeating: "a", count: 2_000) + "b$",
            "/" + String(repeating: "*", count: 2_000) + "b", String(repeating: "*a*", count: 600) + "b$",
        ])
    func linear(_ pattern: String) {
        let path = "/" + String(repeating: "a", count: 60_000)
        let (verdict, steps) = rules(["Disallow: \(pattern)"]).judge(path)
        #expect(verdict == .allowed)
        // Once to normalise it, once to compare it, and once the pattern.
        #expect(steps <= 2 * path.utf8.count + 2 * pattern.utf8.count + 10, "\(steps)")
        #expect(rules(["Disallow: \(pattern)"]).verdict(on: path + "b") == .disallowed)
    }

    @Test("120 rules of 4,000 bytes and a path of 60,000 take the steps that a URL may have, and no more")
    func attack() {
        let path = "/" + String(repeating: "a", count: 60_000)
        for shape in ["/*", "/*a*", "*"] {
            let lines = (0..<120).map { "Disallow: \(shape)" + String(repeating: "a", count: 4_000 - $0) + "b" }
            let rules = rules(lines)
            // Rules of more than 2,048 bytes are cut, and then they match: what disallows becomes stricter.
            #expect(rules.verdict(on: path) == .disallowed)
            let short = (0..<120).map { "Disallow: \(shape)" + String(repeating: "a", count: 1_900 - $0) + "b" }
            let (verdict, steps) = self.rules(short).judge(path)
            #expect(verdict == .unknown && steps > RobotsRules.maxSteps)
            #expect(steps <= RobotsRules.maxSteps + 3 * path.utf8.count, "\(steps)")
            // On a usual path they cost what it has.
            #expect(self.rules(short).judge("/photos/2026/07/a.jpg?w=640").steps < 120 * 60)
        }
    }

    @Test("500 KiB of rules are read (RFC 9309, 2.5), and what is kept of them has a bound")
    func size() {
        let line = "Disallow: /" + String(repeating: "x", count: 89)
        let count = 500 * 1024 / (line.utf8.count + 1)
        #expect(
            rules(Array(repeating: line, count: count - 2) + ["Disallow: /last"]).verdict(on: "/last/1") == .disallowed)
        let longest = [
            rules(Array(repeating: "Disallow:/", count: 100_000)), rules(Array(repeating: "Allow:/a", count: 100_000)),
            rules(["Disallow: /" + String(repeating: "x", count: 2 << 20)]),
            rules(Array(repeating: line, count: 20_000)),
            rules(Array(repeating: "Disallow: /é", count: 100_000)),
        ]
        #expect(longest.map(\.byteCount).max()! < 800_000, "\(longest.map(\.byteCount))")
        // A rule that is too long: what disallows is cut, what allows is left out, so neither allows more.
        let long = "/" + String(repeating: "x", count: 3_000)
        #expect(rules(["Disallow: \(long)y"]).verdict(on: long) == .disallowed)
        #expect(rules(["Disallow: /", "Allow: \(long)"]).verdict(on: long) == .disallowed)
    }

    @Test("A worker keeps 16 MiB of them and 10,000 sites, those asked for last")
    func pages() {
        var pages = RobotsPages()
        let large = rules((0..<5_000).map { "Disallow: /\($0)" + String(repeating: "x", count: 80) })
        func site(_ number: Int) -> RobotsSite { RobotsSite(site: "http://h\(number):80", agent: "prefetch") }
        for number in 0..<1_000 {
            pages.keep(RobotsPages.Page(verdict: .rules(large), expires: 1), of: site(number))
            // It is asked for between the others.
            #expect(pages.page(of: site(0)) != nil)
            #expect(pages.byteCount <= RobotsPages.maxBytes)
        }
        #expect(pages.count * large.byteCount <= pages.byteCount && pages.count > 10)
        #expect(pages.page(of: site(999)) != nil && pages.page(of: site(1)) == nil)
        for number in 0..<30_000 {
            pages.keep(RobotsPages.Page(verdict: .rules(.none), expires: 1), of: site(number))
        }
        #expect(pages.count <= RobotsPages.maxSites && pages.byteCount < 4 << 20)
        // One site again and again is one page.
        for _ in 0..<100 { pages.keep(RobotsPages.Page(verdict: .rules(large), expires: 1), of: site(1)) }
        #expect(pages.byteCount < 4 << 20)
    }

    @Test("A redirect to a path of 60,000 bytes under such rules ends as refused; other transfers go on")
    func redirect() async throws {
        let server = try OriginServer()
        let lines = (0..<120).map { "Disallow: /*" + String(repeating: "a", count: 1_900 - $0) + "b" }
        server.route(
            "/robots.txt", OriginResponse(body: Array(("User-agent: *\n" + lines.joined(separator: "\n")).utf8)))
        let path = "/" + String(repeating: "a", count: 60_000)
        server.route("/hop", .redirect(to: server.url(path)))
        server.setFallback { _ in OriginResponse(body: pseudoImage(1_000)) }
        let downloader = try makeDownloader { $0.asksRobots = true }
        let error = await downloader.failure(server.url("/hop"))
        #expect(error?.outcome == .refused && error?.reason == .unreadableRobots)
        #expect(error?.message.contains("takes more than 4194304 steps") == true, "\(String(describing: error))")
        #expect(await downloader.failure(server.url("/a")) == nil)
        #expect(server.requests.map(\.path) == ["/robots.txt", "/hop", "/a"])
    }
}

/// The robots.txt files that a downloader keeps, within a number of bytes and of sites: those that were asked for longest ago go first, and
/// are read again if their site is met again.
struct RobotsPages {
    struct Page {
        enum Verdict {
            case rules(RobotsRules)
            case unreadable(String)
        }

        var verdict: Verdict
        var expires: Double

        /// What the site's `Crawl-delay` allows.
        var requestsPerSecond: Double? {
            guard case .rules(let rules) = verdict else { return nil }
            return rules.delay.map { 1 / $0 }
        }

        var byteCount: Int {
            switch verdict {
            case .rules(let rules): rules.byteCount
            case .unreadable(let reason): 256 + reason.utf8.count
            }
        }

        func refusal(of request: RequestURL) -> WebImageError? {
            switch verdict {
            case .rules(let rules):
                switch rules.verdict(on: request.target) {
                case .allowed: nil
                case .disallowed:
                    WebImageError(.refused, "robots.txt of \(request.host) does not allow it", reason: .robots)
                case .unknown:
                    WebImageError(
                        .refused,
                        "robots.txt of \(request.host) takes more than \(RobotsRules.maxSteps) steps for this URL",
                        reason: .unreadableRobots)
                }
            case .unreadable(let reason):
                WebImageError(
                    .refused, "robots.txt of \(request.host) cannot be read: \(reason)", reason: .unreadableRobots)
            }
        }
    }

    private struct Kept {
        var page: Page
        var used: Int
    }

    static let maxBytes = 16 << 20
    static let maxSites = 10_000

    private var kept: [RobotsSite: Kept] = [:]
    private var uses = 0
    /// Bytes of all pages, and of the names of their sites.
    private(set) var byteCount = 0

    var count: Int { kept.count }

    /// The page of a site, which counts as asked for.
    mutating func page(of site: RobotsSite) -> Page? {
        uses += 1
        kept[site]?.used = uses
        return kept[site]?.page
    }

    mutating func keep(_ page: Page, of site: RobotsSite) {
        uses += 1
        if let old = kept.updateValue(Kept(page: page, used: uses), forKey: site) {
            byteCount -= Self.cost(site, old.page)
        }
        byteCount += Self.cost(site, page)
        guard byteCount > Self.maxBytes || kept.count > Self.maxSites else { return }
        // A quarter goes at once, so that the order is not asked for with each.
        for (site, old) in kept.sorted(by: { $0.value.used < $1.value.used }) {
            guard byteCount > Self.maxBytes * 3 / 4 || kept.count > Self.maxSites * 3 / 4, kept.count > 1 else { break }
            kept[site] = nil
            byteCount -= Self.cost(site, old.page)
        }
    }

    private static func cost(_ site: RobotsSite, _ page: Page) -> Int {
        page.byteCount + site.site.utf8.count + site.agent.utf8.count
    }
}

/// The robots.txt of the sites a downloader asks: read once for each and each name it gives itself, before anything else of it. Only the downloader's thread uses it.
final class RobotsBook {
    private struct Page {
        var verdict: Verdict
        var expires: Double

        func refusal(of request: RequestURL) -> WebImageError? {
            switch verdict {
            case .rules(let rules):
                rules.allow(request.target)
                    ? nil : WebImageError(.refused, "robots.txt of \(request.host) does not allow it")
            case .unreadable(let reason):
                WebImageError(.refused, "robots.txt of \(request.host) cannot be read: \(reason)")
            }
        }
    }

    private enum Verdict {
        case rules(RobotsRules)
        /// It could not be read, with the reason.
        case unreadable(String)
    }

    /// What is to be done with a request.
    enum Answer {
        case allowed
        case refused(WebImageError)
        /// The file is on its way, and the operation waits here for it.
        case waits
        /// It waits here, and the file of the site is to be read.
        case read(RobotsSite)
    }

    /// An operation that waited for a file which has come. `refusal`: the file does not allow it.
    typealias Released = (operation: DownloadOperation, place: QueuePlace, refusal: WebImageError?)

    /// Seconds a file is kept (RFC 9309, section 2.4: a day at most), and one that could not be read.
    private static let kept = 3600.0, keptUnreadable = 60.0
    private static let mostSites = 10_000
    /// Whether other processes ask the same sites: one of them reads a file for all.
    private let isShared: Bool
    private var pages: [RobotsSite: Page] = [:]
    /// Sites to ask the others about, and those to ask them about again, at which time.
    private var wanted: Set<RobotsSite> = []
    private var later: [RobotsSite: Double] = [:]
    /// What to tell the others.
    private var notes: [RobotsNote] = []
    private var waiting: [RobotsSite: [(operation: DownloadOperation, place: QueuePlace)]] = [:]

    init(isShared: Bool) { self.isShared = isShared }

    /// What is to be done with an operation's hop. Where it waits, ``didRead(_:_:now:)`` or ``adopt(_:text:remaining:now:)`` releases it.
    func admit(_ operation: DownloadOperation, at place: QueuePlace, now: Double) -> Answer {
        let site = Self.site(of: operation)
        if waiting[site] == nil {
            guard let page = pages[site], page.expires > now else {
                waiting[site] = [(operation, place)]
                guard isShared else { return .read(site) }
                // The others are asked first.
                wanted.insert(site)
                return .waits
            }
            return page.refusal(of: operation.request).map { .refused($0) } ?? .allowed
        }
        waiting[site, default: []].append((operation, place))
        return .waits
    }

    /// Whether an operation waits here.
    func isWaiting(_ operation: DownloadOperation) -> Bool {
        waiting[Self.site(of: operation)]?.contains { $0.operation === operation } ?? false
    }

    /// How the file of a site is to be asked for: as those who wait for it ask; nil: nobody does.
    func profile(of site: RobotsSite) -> RequestProfile? { waiting[site]?.first?.operation.profile }

    /// The file came, or did not; who waited for it.
    func didRead(
        _ site: RobotsSite, _ result: Result<DownloadedImage, WebImageError>, now: Double
    ) -> [Released] {
        let page = page(result, agent: site.agent, now: now)
        if isShared { notes.append(note(page, of: site, now: now)) }
        return keep(page, of: site, now: now)
    }

    private func keep(_ page: Page, of site: RobotsSite, now: Double) -> [Released] {
        if pages.count >= Self.mostSites { pages = [:] }
        pages[site] = page
        // A file that nobody could read for want of a connection says nothing: the request itself will.
        let isKnown = page.expires > now
        return (waiting.removeValue(forKey: site) ?? []).map { operation, place in
            (operation, place, isKnown ? page.refusal(of: operation.request) : nil)
        }
    }

    private func page(_ result: Result<DownloadedImage, WebImageError>, agent: String, now: Double) -> Page {
        let allowed = Page(verdict: .rules(.none), expires: now + Self.kept)
        switch result {
        case .success(let file):
            let text: String? = try? file.body.withUnsafeBytes { bytes throws(WebImageError) in
                String(decoding: bytes.prefix(RobotsRules.mostBytes), as: UTF8.self)
            }
            return Page(verdict: .rules(RobotsRules(text: text ?? "", agent: agent)), expires: now + Self.kept)
        case .failure(let error):
            // Unavailable (section 2.3.1.3) allows everything, unreachable (2.3.1.4) nothing.
            if let status = error.httpStatus, status != 429, status < 500 { return allowed }
            switch error.code {
            case .tooManyRedirects, .refused, .invalidURL: return allowed
            case .cannotFindHost, .cannotConnectToHost, .secureConnectionFailed, .localFault, .cancelled:
                // Whatever else is asked there ends the same way, and says so better.
                return Page(verdict: .rules(.none), expires: now)
            default: return Page(verdict: .unreadable(error.message), expires: now + Self.keptUnreadable)
            }
        }
    }

    // MARK: Other processes

    /// Whether somebody has to be asked or told.
    var hasCalls: Bool { !wanted.isEmpty || !notes.isEmpty }

    /// What to ask and to tell; it is on its way from here on.
    func takeCalls() -> (sites: [RobotsSite], notes: [RobotsNote]) {
        defer { (wanted, notes) = ([], []) }
        return (Array(wanted), notes)
    }

    /// Another process reads the file: it is asked about once more.
    func ask(later site: RobotsSite, now: Double) { later[site] = now + 0.2 }

    /// When to ask again; infinity: never.
    var nextLook: Double { later.values.min() ?? .infinity }

    /// Sites whose time has come are asked about again.
    func lookAgain(now: Double) {
        guard !later.isEmpty else { return }
        for (site, time) in later where time <= now {
            later[site] = nil
            // Nobody waits for it any more where it came otherwise.
            if waiting[site] != nil { wanted.insert(site) }
        }
    }

    /// What another process has read; who waited for it.
    func adopt(_ site: RobotsSite, text: String, remaining: Double, now: Double) -> [Released] {
        let verdict: Verdict =
            text.first == "!"
            ? .unreadable(String(text.dropFirst())) : .rules(RobotsRules(text: text, agent: site.agent))
        return keep(Page(verdict: verdict, expires: now + min(remaining, Self.kept)), of: site, now: now)
    }

    private func note(_ page: Page, of site: RobotsSite, now: Double) -> RobotsNote {
        var text =
            switch page.verdict {
            case .rules(let rules): rules.text
            case .unreadable(let reason): "!" + reason
            }
        // What says nothing, and what is too much, the others find out for themselves.
        if page.expires <= now || text.utf8.count > RobotsNote.mostBytes { text = "" }
        return RobotsNote(site: site, text: text, lifetime: max(0, page.expires - now))
    }

    private static func site(of operation: DownloadOperation) -> RobotsSite {
        let request = operation.request
        return RobotsSite(
            site: "\(request.scheme)://\(request.host):\(request.port)", agent: operation.profile.productToken)
    }
}

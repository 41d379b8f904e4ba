internal import Threading

/// The robots.txt of the sites a downloader asks: read once for each, before anything else of it. Only the downloader's thread uses it.
final class RobotsBook {
    private struct Page {
        var verdict: Verdict
        var expires: Double
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
        /// The file is being read; `isFirst`: nobody had asked for it yet.
        case wait(site: String, isFirst: Bool)
    }

    /// Seconds a file is kept (RFC 9309, section 2.4: a day at most), and one that could not be read.
    private static let kept = 3600.0, keptUnreadable = 60.0
    private static let mostSites = 10_000
    private let agent: String
    /// Whether other processes ask the same sites: one of them reads a file for all.
    var isShared = false
    private var pages: [String: Page] = [:]
    /// Sites to ask the others about, and those to ask them about again, at which time.
    private var wanted: Set<String> = []
    private var later: [String: Double] = [:]
    /// What to tell the others.
    private var notes: [RobotsNote] = []
    private var waiting: [String: [(operation: DownloadOperation, place: QueuePlace)]] = [:]

    init(agent: String) { self.agent = agent }

    func ask(_ request: RequestURL, now: Double) -> Answer {
        let site = Self.site(of: request)
        if waiting[site] != nil { return .wait(site: site, isFirst: false) }
        guard let page = pages[site], page.expires > now else { return .wait(site: site, isFirst: true) }
        switch page.verdict {
        case .rules(let rules):
            guard !rules.allow(request.target) else { return .allowed }
            return .refused(WebImageError(.refused, "robots.txt of \(request.host) does not allow it"))
        case .unreadable(let reason):
            return .refused(WebImageError(.refused, "robots.txt of \(request.host) cannot be read: \(reason)"))
        }
    }

    func wait(_ operation: DownloadOperation, at place: QueuePlace, for site: String) {
        waiting[site, default: []].append((operation, place))
    }

    /// Whether an operation waits here.
    func isWaiting(_ operation: DownloadOperation) -> Bool {
        waiting[Self.site(of: operation.request)]?.contains { $0.operation === operation } ?? false
    }

    /// The file came, or did not; who waited for it.
    func didRead(
        _ site: String, _ result: Result<DownloadedImage, WebImageError>, now: Double
    ) -> [(operation: DownloadOperation, place: QueuePlace)] {
        let page = page(result, now: now)
        if isShared { notes.append(note(page, of: site, now: now)) }
        return keep(page, of: site)
    }

    private func keep(_ page: Page, of site: String) -> [(operation: DownloadOperation, place: QueuePlace)] {
        if pages.count >= Self.mostSites { pages = [:] }
        pages[site] = page
        return waiting.removeValue(forKey: site) ?? []
    }

    private func page(_ result: Result<DownloadedImage, WebImageError>, now: Double) -> Page {
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

    /// A site's file is not known here; the others are asked first.
    func want(_ site: String) { wanted.insert(site) }

    /// Whether somebody has to be asked or told.
    var hasCalls: Bool { !wanted.isEmpty || !notes.isEmpty }

    /// What to ask and to tell; it is on its way from here on.
    func takeCalls() -> (sites: [RobotsSite], notes: [RobotsNote]) {
        defer { (wanted, notes) = ([], []) }
        return (wanted.map { RobotsSite(site: $0, agent: agent) }, notes)
    }

    /// Another process reads the file: it is asked about once more.
    func ask(later site: String, now: Double) { later[site] = now + 0.2 }

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
    func adopt(
        _ site: String, text: String, remaining: Double, now: Double
    ) -> [(operation: DownloadOperation, place: QueuePlace)] {
        let verdict: Verdict =
            text.first == "!"
            ? .unreadable(String(text.dropFirst())) : .rules(RobotsRules(text: text, agent: agent))
        return keep(Page(verdict: verdict, expires: now + min(remaining, Self.kept)), of: site)
    }

    private func note(_ page: Page, of site: String, now: Double) -> RobotsNote {
        var text =
            switch page.verdict {
            case .rules(let rules): rules.text
            case .unreadable(let reason): "!" + reason
            }
        // What says nothing, and what is too much, the others find out for themselves.
        if page.expires <= now || text.utf8.count > RobotsNote.mostBytes { text = "" }
        return RobotsNote(site: RobotsSite(site: site, agent: agent), text: text, lifetime: max(0, page.expires - now))
    }

    static func site(of request: RequestURL) -> String { "\(request.scheme)://\(request.host):\(request.port)" }
}

extension ImageDownloader {
    /// Lets an operation in at its next hop: once the site's robots.txt allows it, where that is to be asked.
    func enter(_ operation: DownloadOperation, at place: QueuePlace = .inOrder) {
        guard let robots, !operation.options.contains(.unasked) else { return enqueue(operation, at: place) }
        switch robots.ask(operation.request, now: MonotonicClock.now) {
        case .allowed: enqueue(operation, at: place)
        case .refused(var error):
            error.attempts = operation.redirects > 0 ? operation.attempts : operation.attempts - 1
            complete(operation, .failure(error))
        case .wait(let site, let isFirst):
            operation.since = MonotonicClock.now
            robots.wait(operation, at: place, for: site)
            guard isFirst else { return }
            if robots.isShared { robots.want(site) } else { readRobots(of: site) }
        }
    }

    private func readRobots(of site: String) {
        Task {
            let result: Result<DownloadedImage, WebImageError>
            do throws(WebImageError) {
                result = .success(try await download("\(site)/robots.txt", options: [.unasked, .uninspected]))
            } catch {
                result = .failure(error)
            }
            didReadRobots(of: site, result)
        }
    }

    private func didReadRobots(of site: String, _ result: Result<DownloadedImage, WebImageError>) {
        guard let robots else { return }
        letIn(robots.didRead(site, result, now: MonotonicClock.now))
    }

    /// What the other processes say of sites' files.
    package func grantRobots(_ answers: [(site: RobotsSite, answer: RobotsAnswer)]) {
        guard let robots else { return }
        for (site, answer) in answers {
            switch answer {
            case .known(let text, let remaining):
                letIn(robots.adopt(site.site, text: text, remaining: remaining, now: MonotonicClock.now))
            case .ask: readRobots(of: site.site)
            case .wait: robots.ask(later: site.site, now: MonotonicClock.now)
            }
        }
    }

    private func letIn(_ operations: [(operation: DownloadOperation, place: QueuePlace)]) {
        guard let robots else { return }
        for (operation, place) in operations where !operation.waiters.isEmpty {
            // A file that nobody could read for want of a connection says nothing: the request itself will.
            if case .wait = robots.ask(operation.request, now: MonotonicClock.now) {
                enqueue(operation, at: place)
            } else {
                enter(operation, at: place)
            }
        }
    }
}

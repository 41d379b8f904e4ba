/// The robots.txt files of a downloader's sites, read once per site and User-Agent before other requests. Used only on the downloader's
/// thread.
final class RobotsBook {
    private typealias Page = RobotsPages.Page

    enum Answer {
        /// * `rate`: requests per second that the site asks for; nil: it does not.
        case allowed(rate: Double?)
        case refused(WebImageError)
        /// The file is being read; the operation waits here.
        case waits
        /// The operation waits here, and the caller has to read the site's file.
        case read(RobotsSite)
    }

    /// An operation whose file has arrived. `refusal`: the file disallows it; `rate`: requests per second that it asks for.
    typealias Released = (operation: DownloadOperation, place: QueuePlace, refusal: WebImageError?, rate: Double?)

    /// Seconds until a file expires (RFC 9309, section 2.4: at most a day), and one that could not be read.
    private static let kept = 3600.0, unreadableLifetime = 60.0
    /// Whether processes share the files: one of them reads each for all.
    private let isShared: Bool
    private var pages = RobotsPages()
    /// Sites to request from other processes, and those to request again, by time.
    private var wanted: Set<RobotsSite> = []
    private var later: [RobotsSite: Double] = [:]
    private var notes: [RobotsCopy] = []
    private var waiting: [RobotsSite: [(operation: DownloadOperation, place: QueuePlace)]] = [:]
    /// The operations in ``waiting``.
    private var held: Set<ObjectIdentifier> = []

    init(isShared: Bool) { self.isShared = isShared }

    /// Decides about an operation's hop. If it waits, ``didRead(_:_:now:)`` or ``adopt(_:text:remaining:now:)`` releases it.
    func admit(_ operation: DownloadOperation, at place: QueuePlace, now: Double) -> Answer {
        let site = Self.site(of: operation)
        if waiting[site] == nil {
            guard let page = pages.page(of: site), page.expires > now else {
                waiting[site] = [(operation, place)]
                held.insert(ObjectIdentifier(operation))
                guard isShared else { return .read(site) }
                // Ask the other processes first.
                wanted.insert(site)
                return .waits
            }
            return page.refusal(of: operation.request).map { .refused($0) } ?? .allowed(rate: page.requestsPerSecond)
        }
        waiting[site, default: []].append((operation, place))
        held.insert(ObjectIdentifier(operation))
        return .waits
    }

    func isWaiting(_ operation: DownloadOperation) -> Bool { held.contains(ObjectIdentifier(operation)) }

    /// The request profile for reading a site's file: that of the waiting operations; nil: none wait.
    func profile(of site: RobotsSite) -> RequestProfile? { waiting[site]?.first?.operation.profile }

    /// Handles the result of reading a file; returns the operations that waited for it.
    func didRead(
        _ site: RobotsSite, _ result: Result<DownloadedImage, WebImageError>, now: Double
    ) -> [Released] {
        let page = page(result, agent: site.agent, now: now)
        if isShared { notes.append(note(page, of: site, now: now)) }
        return keep(page, of: site, now: now)
    }

    private func keep(_ page: Page, of site: RobotsSite, now: Double) -> [Released] {
        pages.keep(page, of: site)
        // A connection failure says nothing about the rules: the request itself will fail.
        let isKnown = page.expires > now
        return (waiting.removeValue(forKey: site) ?? []).map { operation, place in
            held.remove(ObjectIdentifier(operation))
            return (
                operation, place, isKnown ? page.refusal(of: operation.request) : nil,
                isKnown ? page.requestsPerSecond : nil
            )
        }
    }

    private func page(_ result: Result<DownloadedImage, WebImageError>, agent: String, now: Double) -> Page {
        let allowed = Page(verdict: .rules(.none), expires: now + Self.kept)
        switch result {
        case .success(let file):
            let rules: RobotsRules? = try? file.body.withUnsafeBytes { bytes throws(WebImageError) in
                RobotsRules(bytes, agent: agent)
            }
            return Page(verdict: .rules(rules ?? .none), expires: now + Self.kept)
        case .failure(let error):
            // Unavailable (section 2.3.1.3) allows everything, unreachable (2.3.1.4) nothing.
            if let status = error.httpStatus, status != 429, status < 500 { return allowed }
            switch error.code {
            case .tooManyRedirects, .refused, .invalidURL: return allowed
            case .cannotFindHost, .cannotConnectToHost, .secureConnectionFailed, .localFault, .cancelled:
                // The other requests fail the same way, with a better message.
                return Page(verdict: .rules(.none), expires: now)
            default: return Page(verdict: .unreadable(error.message), expires: now + Self.unreadableLifetime)
            }
        }
    }

    // MARK: Other processes

    var hasMessages: Bool { !wanted.isEmpty || !notes.isEmpty }

    /// Returns requests and results, and marks them as sent.
    func takeMessages() -> (sites: [RobotsSite], notes: [RobotsCopy]) {
        defer { (wanted, notes) = ([], []) }
        return (Array(wanted), notes)
    }

    /// Schedules another request, because another process is reading the file.
    func ask(later site: RobotsSite, now: Double) { later[site] = now + 0.2 }

    /// Next time to ask again; infinity: never.
    var nextQueryTime: Double { later.values.min() ?? .infinity }

    func askAgain(now: Double) {
        guard !later.isEmpty else { return }
        for (site, time) in later where time <= now {
            later[site] = nil
            // None wait for it if it has arrived otherwise.
            if waiting[site] != nil { wanted.insert(site) }
        }
    }

    /// Adopts the file read by another process; returns the operations that waited for it.
    func adopt(_ site: RobotsSite, text: String, remaining: Double, now: Double) -> [Released] {
        let verdict: Page.Verdict =
            text.first == "!"
            ? .unreadable(String(text.dropFirst())) : .rules(RobotsRules(text: text, agent: site.agent))
        return keep(Page(verdict: verdict, expires: now + min(remaining, Self.kept)), of: site, now: now)
    }

    private func note(_ page: Page, of site: RobotsSite, now: Double) -> RobotsCopy {
        var text =
            switch page.verdict {
            case .rules(let rules): rules.text
            case .unreadable(let reason): "!" + reason
            }
        // If it says nothing or is too long, the other processes read it themselves.
        if page.expires <= now || text.utf8.count > RobotsCopy.maxBytes { text = "" }
        return RobotsCopy(site: site, text: text, lifetime: max(0, page.expires - now))
    }

    private static func site(of operation: DownloadOperation) -> RobotsSite {
        let request = operation.request
        return RobotsSite(
            site: "\(request.scheme)://\(request.host):\(request.port)", agent: operation.profile.productToken)
    }
}

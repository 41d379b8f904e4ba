internal import Threading

/// Decides whether an operation may start: robots.txt of its site, its turn among those of its host, and bandwidth, all three coordinated
/// with other processes. Used only on the downloader's thread.
final class DownloadAdmission {
    let hosts: HostSchedule
    let proven = ProvenSites()
    private var robots = RobotsBook(isShared: false)
    /// Bandwidth limit for bodies; nil: none.
    private(set) var bandwidth: BandwidthLimit?
    private var configuration: ImageDownloader.Configuration
    /// Shares of hosts negotiated with other processes; nil: not shared.
    private var shares: HostShares?
    private var sharedRate: Int?
    private var caller: Waiter<HostMessages?>?
    /// Starts reading a site's robots.txt; ``didReadRobots(of:_:)`` receives the result.
    private let readRobots: @Sendable (_ site: RobotsSite, _ profile: RequestProfile) -> Void

    init(
        _ configuration: ImageDownloader.Configuration,
        readRobots: @escaping @Sendable (_ site: RobotsSite, _ profile: RequestProfile) -> Void
    ) {
        self.configuration = configuration
        self.readRobots = readRobots
        hosts = HostSchedule(configuration, proven)
        bandwidth = configuration.bandwidth(shared: nil)
    }

    /// Starts a new session; nothing may be waiting.
    func beginSession(_ new: ImageDownloader.Configuration) {
        configuration = new
        hosts.apply(new)
        robots = RobotsBook(isShared: shares != nil)
        bandwidth = new.bandwidth(shared: sharedRate)
    }

    // MARK: Operations

    /// Admits an operation at its next hop: it waits for its turn, after a check of the site's robots.txt if required.
    /// - Returns: the error if it is refused.
    func enter(_ operation: DownloadOperation, at place: QueuePlace) -> WebImageError? {
        guard operation.profile.configuration.asksRobots, !operation.key.options.contains(.unasked) else {
            hosts.enqueue(operation, at: place, rate: nil)
            return nil
        }
        let now = MonotonicClock.now
        switch robots.admit(operation, at: place, now: now) {
        case .allowed(let rate):
            hosts.enqueue(operation, at: place, rate: rate)
            return nil
        case .refused(let error): return Self.refused(operation, error)
        case .waits: operation.wait(for: nil, now: now)
        case .read(let site):
            operation.wait(for: nil, now: now)
            readRobots(site, operation.profile)
        }
        return nil
    }

    private static func refused(_ operation: DownloadOperation, _ error: WebImageError) -> WebImageError {
        var error = error
        error.attempts = operation.redirects > 0 ? operation.attempts : operation.attempts - 1
        return error
    }

    func state(of operation: DownloadOperation, at time: Double) -> DownloadState {
        guard robots.isWaiting(operation) else { return hosts.state(of: operation, at: time) }
        var waiting = DownloadState(operation, .waitingForHost, at: time)
        waiting.reason = "its robots.txt"
        return waiting
    }

    func wake(now: Double) {
        hosts.wake(now: now)
        robots.askAgain(now: now)
        bandwidth?.goOn()
    }

    /// When ``wake(now:)`` is due; infinity: never by itself.
    var nextWake: Double {
        min(hosts.nextWake, robots.nextQueryTime, bandwidth?.nextTime ?? .infinity)
    }

    // MARK: robots.txt

    /// Operations refused by a site's robots.txt, each with its error.
    typealias Refused = [(operation: DownloadOperation, error: WebImageError)]

    func didReadRobots(of site: RobotsSite, _ result: Result<DownloadedImage, WebImageError>) -> Refused {
        letIn(robots.didRead(site, result, now: MonotonicClock.now))
    }

    func grantRobots(_ answers: [(site: RobotsSite, answer: RobotsAnswer)]) -> Refused {
        var refused: Refused = []
        for (site, answer) in answers {
            switch answer {
            case .known(let text, let remaining):
                refused += letIn(robots.adopt(site, text: text, remaining: remaining, now: MonotonicClock.now))
            case .ask: if let profile = robots.profile(of: site) { readRobots(site, profile) }
            case .wait: robots.ask(later: site, now: MonotonicClock.now)
            }
        }
        return refused
    }

    private func letIn(_ released: [RobotsBook.Released]) -> Refused {
        var refused: Refused = []
        for (operation, place, refusal, rate) in released where !operation.waiters.isEmpty {
            if let refusal {
                refused.append((operation, Self.refused(operation, refusal)))
            } else {
                hosts.enqueue(operation, at: place, rate: rate)
            }
        }
        return refused
    }

    // MARK: Other processes

    /// Starts coordinating with other processes that use the same hosts and sites. Call it before anything enters.
    /// * `rate`: bytes of bodies per second for all of them together; nil: no limit.
    func share(limitRate rate: Int?) {
        let shares = HostShares()
        self.shares = shares
        sharedRate = rate
        hosts.share(shares)
        robots = RobotsBook(isShared: true)
        if rate != nil { bandwidth = configuration.bandwidth(shared: rate) }
    }

    /// Announces the running transfers of every host again: the other processes may have dropped this one as dead.
    func reportAgain() { shares?.reportAgain() }

    /// Answers the caller as soon as there are requests or reports for others; the previous caller gets nil.
    func call(_ waiter: Waiter<HostMessages?>) {
        caller?.answer(nil)
        caller = waiter
        deliverMessages()
    }

    func deliverMessages() {
        // A cancelled waiter must not take any.
        guard shares != nil, let caller, !caller.isAnswered else { return }
        let calls = takeMessages()
        guard !calls.isEmpty else { return }
        caller.answer(calls)
        self.caller = nil
    }

    private func takeMessages() -> HostMessages {
        let calls = hosts.takeMessages()
        let pages = robots.hasMessages ? robots.takeMessages() : nil
        var hostRequests = calls.hostRequests
        if let wish = bandwidth?.takeRequest() { hostRequests.append(wish) }
        return HostMessages(
            hostRequests: hostRequests, shares: calls.shares, news: calls.news, sites: pages?.sites ?? [],
            rules: pages?.notes ?? [])
    }

    /// Handles replies to requests, in their order; nil: not granted now. Times are those of `MonotonicClock`.
    func grant(_ answers: [(host: String, reservation: HostReservation?)]) {
        let now = MonotonicClock.now
        for answer in answers {
            if answer.host == BandwidthLease.name {
                bandwidth?.grant(answer.reservation)
            } else {
                hosts.governor?.grant(answer.host, answer.reservation, now: now)
            }
        }
    }
}

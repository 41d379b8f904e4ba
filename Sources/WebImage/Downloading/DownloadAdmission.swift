internal import Threading

/// Decides whether an operation may start: robots.txt of its site, its host's name, its turn among those of its host, and bandwidth. All but
/// names are coordinated with other processes. Used only on the downloader's thread.
final class DownloadAdmission {
    let hosts: HostSchedule
    let names: NameBook
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
        _ configuration: ImageDownloader.Configuration, proven: ProvenSites, silent: SilentHosts, sockets: NameSockets,
        closed: BlockedEndpoints,
        readRobots: @escaping @Sendable (_ site: RobotsSite, _ profile: RequestProfile) -> Void
    ) {
        self.configuration = configuration
        self.readRobots = readRobots
        hosts = HostSchedule(configuration, proven, silent)
        names = NameBook(configuration, sockets: sockets, closed: closed, hosts: hosts)
        bandwidth = configuration.bandwidth(shared: nil)
    }

    /// Starts a new session; nothing may be waiting.
    func beginSession(_ new: ImageDownloader.Configuration) {
        configuration = new
        hosts.apply(new)
        names.beginSession(new)
        robots = RobotsBook(isShared: shares != nil)
        bandwidth = new.bandwidth(shared: sharedRate)
    }

    // MARK: Operations

    /// Admits an operation at its next hop: it waits for its turn, after a check of the site's robots.txt if required, and until its
    /// host's addresses are known.
    /// - Returns: the error if it is refused.
    func enter(_ operation: DownloadOperation, at place: QueuePlace) -> WebImageError? {
        guard operation.profile.asksRobots, !operation.key.options.contains(.unasked) else {
            return names.enter(operation, at: place, rate: nil)
        }
        let now = MonotonicClock.now
        switch robots.admit(operation, at: place, now: now) {
        case .allowed(let rate): return names.enter(operation, at: place, rate: rate)
        case .refused(let error): return operation.refused(error)
        case .waits: operation.wait(for: nil, now: now)
        case .read(let site):
            operation.wait(for: nil, now: now)
            readRobots(site, operation.profile)
        }
        return nil
    }

    func state(of operation: DownloadOperation, at time: Double) -> DownloadState {
        let isForName = operation.isWaitingForName
        guard isForName || robots.isWaiting(operation) else { return hosts.state(of: operation, at: time) }
        var waiting = DownloadState(operation, .waitingForHost, at: time)
        waiting.reason = isForName ? "its name" : "its robots.txt"
        waiting.hostWait = isForName ? nil : .robots
        return waiting
    }

    /// - Returns: operations whose names have no addresses.
    func wake(now: Double) -> Refused {
        hosts.wake(now: now)
        robots.askAgain(now: now)
        bandwidth?.goOn()
        return names.turn(now: now)
    }

    /// When ``wake(now:)`` is due; infinity: never by itself.
    func nextWake(now: Double) -> Double {
        min(
            hosts.nextWake, robots.nextQueryTime, bandwidth?.nextTime ?? .infinity, names.nextWake(now: now))
    }

    // MARK: robots.txt

    /// Operations that are refused, each with its error.
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
                refused.append((operation, operation.refused(refusal)))
            } else if let error = names.enter(operation, at: place, rate: rate) {
                refused.append((operation, error))
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
    func grant(_ answers: [(request: HostSlotRequest, reservation: HostReservation?)]) {
        let now = MonotonicClock.now
        for (request, reservation) in answers {
            if request.host == BandwidthLease.name {
                bandwidth?.grant(reservation)
            } else {
                hosts.governor?.grant(request, reservation, now: now)
            }
        }
    }
}

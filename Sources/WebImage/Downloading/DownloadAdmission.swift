internal import Threading

/// Whether an operation may begin now: what its site asks of programs, its turn among those of its host, and how fast bodies may come.
/// Other processes have a say in all three. Only the downloader's thread uses it.
final class DownloadAdmission {
    /// Whose turn it is.
    let hosts: HostSchedule
    /// What sites ask of programs.
    private var robots = RobotsBook(isShared: false)
    /// How fast bodies may come; nil: as fast as they do.
    private(set) var bandwidth: BandwidthLimit?
    private var configuration: ImageDownloader.Configuration
    /// What this process may have of the hosts that other processes ask too, and agree with it on; nil: it is alone.
    private var shares: HostShares?
    /// Bytes a second that all these processes have together.
    private var sharedRate: Int?
    /// Who waits for questions to others.
    private var caller: Waiter<HostCalls?>?
    /// Has a site's robots.txt read, and ``didReadRobots(of:_:)`` called.
    private let readRobots: @Sendable (_ site: RobotsSite, _ profile: RequestProfile) -> Void

    init(
        _ configuration: ImageDownloader.Configuration,
        readRobots: @escaping @Sendable (_ site: RobotsSite, _ profile: RequestProfile) -> Void
    ) {
        self.configuration = configuration
        self.readRobots = readRobots
        hosts = HostSchedule(configuration)
        bandwidth = configuration.bandwidth(shared: nil)
    }

    /// A new session begins; nothing waits any more.
    func beginSession(_ new: ImageDownloader.Configuration) {
        configuration = new
        hosts.apply(new)
        robots = RobotsBook(isShared: shares != nil)
        bandwidth = new.bandwidth(shared: sharedRate)
    }

    // MARK: The way of an operation

    /// Lets an operation in at its next hop: it waits for its turn, once the site's robots.txt allows it where that is to be asked.
    /// - Returns: the error it ends with instead.
    func enter(_ operation: DownloadOperation, at place: QueuePlace) -> WebImageError? {
        guard operation.profile.configuration.asksRobots, !operation.key.options.contains(.unasked) else {
            hosts.enqueue(operation, at: place)
            return nil
        }
        let now = MonotonicClock.now
        switch robots.admit(operation, at: place, now: now) {
        case .allowed:
            hosts.enqueue(operation, at: place)
            return nil
        case .refused(let error): return Self.refused(operation, error)
        case .waits: operation.wait(for: nil, now: now)
        case .read(let site):
            operation.wait(for: nil, now: now)
            readRobots(site, operation.profile)
        }
        return nil
    }

    /// Of a first hop no request of this try was made.
    private static func refused(_ operation: DownloadOperation, _ error: WebImageError) -> WebImageError {
        var error = error
        error.attempts = operation.redirects > 0 ? operation.attempts : operation.attempts - 1
        return error
    }

    /// What an operation waits for that has no transfer.
    func state(of operation: DownloadOperation, at time: Double) -> DownloadState {
        guard robots.isWaiting(operation) else { return hosts.state(of: operation, at: time) }
        var waiting = DownloadState(operation, .waitingForHost, at: time)
        waiting.reason = "its robots.txt"
        return waiting
    }

    /// Lets those go on whose time has come.
    func wake(now: Double) {
        hosts.wake(now: now)
        robots.lookAgain(now: now)
        bandwidth?.goOn()
    }

    /// When ``wake(now:)`` has something to do; infinity: never by itself.
    var nextWake: Double {
        min(hosts.nextWake, robots.nextLook, bandwidth?.nextTime ?? .infinity)
    }

    // MARK: robots.txt

    /// Those that waited for a site's robots.txt and end with it, each with its error.
    typealias Refused = [(operation: DownloadOperation, error: WebImageError)]

    /// A site's robots.txt came, or did not.
    func didReadRobots(of site: RobotsSite, _ result: Result<DownloadedImage, WebImageError>) -> Refused {
        letIn(robots.didRead(site, result, now: MonotonicClock.now))
    }

    /// What the other processes say of sites' files.
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
        for (operation, place, refusal) in released where !operation.waiters.isEmpty {
            if let refusal {
                refused.append((operation, Self.refused(operation, refusal)))
            } else {
                hosts.enqueue(operation, at: place)
            }
        }
        return refused
    }

    // MARK: Other processes

    /// Other processes ask the same hosts and sites from now on, and agree with this one on it. Before anything enters.
    /// * `rate`: bytes of bodies a second that all of them have together; nil: no such limit.
    func share(limitRate rate: Int?) {
        let shares = HostShares()
        self.shares = shares
        sharedRate = rate
        hosts.share(shares)
        robots = RobotsBook(isShared: true)
        if rate != nil { bandwidth = configuration.bandwidth(shared: rate) }
    }

    /// Says of every host again how many transfers it has: others may have taken it for dead.
    func sayAgain() { shares?.sayAgain() }

    /// Answers the caller as soon as something is to be asked or told; the one before it with nil.
    func call(_ waiter: Waiter<HostCalls?>) {
        caller?.answer(nil)
        caller = waiter
        makeCalls()
    }

    /// Hands out what has come together.
    func makeCalls() {
        // One that was cancelled takes nothing.
        guard shares != nil, let caller, !caller.isAnswered else { return }
        let calls = takeCalls()
        guard !calls.isEmpty else { return }
        caller.answer(calls)
        self.caller = nil
    }

    private func takeCalls() -> HostCalls {
        let calls = hosts.takeCalls()
        let pages = robots.hasCalls ? robots.takeCalls() : nil
        var wishes = calls.wishes
        if let wish = bandwidth?.takeWish() { wishes.append(wish) }
        return HostCalls(
            wishes: wishes, shares: calls.shares, news: calls.news, sites: pages?.sites ?? [],
            rules: pages?.notes ?? [])
    }

    /// The answers to wishes, in their order; nil: none now. Times are those of `MonotonicClock`.
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

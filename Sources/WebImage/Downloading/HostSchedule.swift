internal import Threading

/// Which of the waiting operations may begin: the queue of each host, what the governor says of it, and what this process may have
/// of the transfers to it. Only the downloader's thread uses it.
final class HostSchedule {
    private var configuration: ImageDownloader.Configuration
    private var queue: DownloadQueue<DownloadOperation>
    /// When hosts may be asked; nil: whenever there is a slot.
    private(set) var governor: HostGovernor?
    /// What it may have of the transfers to one host that all processes have together; nil: it is alone.
    private var shares: HostShares?

    init(_ configuration: ImageDownloader.Configuration) {
        self.configuration = configuration
        queue = DownloadQueue(order: configuration.executionOrder)
        governor = configuration.governor(isShared: false)
    }

    /// Changes the order of the queue, and how hosts are treated; what is known of them stays.
    func apply(_ new: ImageDownloader.Configuration) {
        if new.executionOrder != configuration.executionOrder { queue.reorder(new.executionOrder) }
        if new.hosts != configuration.hosts {
            if let governor, !new.hosts.isIdle {
                governor.renew(new.hosts)
            } else {
                governor = new.governor(isShared: shares != nil)
            }
        }
        configuration = new
    }

    /// Other processes ask the same hosts from now on, and agree with this one on it. Before anything is enqueued.
    func share(_ shares: HostShares) {
        self.shares = shares
        governor = configuration.governor(isShared: true)
    }

    // MARK: The way of an operation

    /// Puts an operation into the queue of its hop's host.
    func enqueue(_ operation: DownloadOperation, at place: QueuePlace) {
        let rate = operation.profile.configuration.hosts.requestsPerSecond
        // A rate of its own where hosts are not governed otherwise.
        if governor == nil, rate != nil { governor = HostGovernor(configuration.hosts, isShared: shares != nil) }
        operation.wait(for: host(of: operation.request), now: MonotonicClock.now)
        queue.enqueue(
            operation, host: operation.host, priority: operation.parameters.priority,
            limits: HostLimits(
                transfers: operation.profile.configuration.connectionLimit(to: operation.request), rate: rate),
            at: place)
    }

    /// What counts as the host of a request.
    private func host(of request: RequestURL) -> String {
        let policy = configuration.hosts
        return governor == nil && policy.groups.isEmpty ? request.host : policy.host(of: request)
    }

    /// Takes the next operation out whose host may be asked now. It has a slot of its host until ``release(_:)``. `refusal`: why it ends
    /// without a request, its host being given up.
    func next() -> (operation: DownloadOperation, refusal: WebImageError?)? {
        guard governor != nil || shares != nil else {
            guard let next = queue.next() else { return nil }
            next.takeSlot(isProbe: false)
            return (next, nil)
        }
        let (governor, shares, now) = (governor, shares, MonotonicClock.now)
        var isProbe = false
        let next = queue.next { host, limits, running, waiting in
            isProbe = false
            guard shares?.mayBegin(host, limit: limits.transfers, running: running, now: now) ?? true else {
                return .no
            }
            guard let governor else { return .next }
            if governor.isGivenUp(host, now: now) {
                return .first(where: { Self.refusal(of: $0, by: governor, now: now) != nil })
            }
            guard governor.mayBegin(host, rate: limits.rate, running: running, waiting: waiting, now: now) else {
                return .no
            }
            isProbe = governor.isProbe
            return isProbe ? .any(of: { !$0.metSilence }) : .next
        }
        guard let next else { return nil }
        next.takeSlot(isProbe: isProbe)
        // A probe finds out whether the host is there, however long it was not.
        return (next, isProbe ? nil : governor.flatMap { Self.refusal(of: next, by: $0, now: now) })
    }

    private static func refusal(
        of operation: DownloadOperation, by governor: HostGovernor, now: Double
    ) -> WebImageError? {
        governor.refusal(of: operation.host, cameAt: operation.since, wasAsked: operation.metSilence, now: now)
    }

    /// Gives the slot of an operation's host back, where it has one.
    func release(_ operation: DownloadOperation) {
        guard let host = operation.giveSlotBack() else { return }
        queue.release(host: host)
        shares?.didEnd(host, load: load(of: host), now: MonotonicClock.now)
    }

    private func load(of host: String) -> HostShares.Load {
        (queue.runningCount(host: host), queue.waitingCount(host: host))
    }

    /// Forgets everything that waits.
    func removeAll() { queue.removeAll() }

    // MARK: What hosts do

    /// A response came. Before its transfer gives its slot back.
    /// * `firstByte`: seconds to its first byte; nil where that says nothing.
    func didAnswer(
        _ operation: DownloadOperation, _ error: WebImageError?, firstByte: @autoclosure () -> Double?
    ) {
        guard let governor, let host = operation.slotHost else { return }
        governor.didAnswer(
            host, error, firstByte: firstByte(), began: operation.progress.hopStart,
            running: queue.runningCount(host: host), longestWait: operation.profile.configuration.maxRetryAfter,
            now: MonotonicClock.now)
    }

    /// A try failed. Where nobody was there to answer, the URL is not to blame, and waits with the others.
    func didFail(_ operation: DownloadOperation, _ error: WebImageError) {
        let progress = operation.progress
        guard let governor, HostHealth.isSilence(error, bytes: progress.bytes) else {
            operation.didFail(metSilence: false, isExcused: false)
            return endProbe(of: operation)
        }
        let isExcused = governor.didFail(
            operation.host, error, wasReached: progress.requestWasSent, began: progress.hopStart,
            now: MonotonicClock.now)
        operation.didFail(metSilence: true, isExcused: isExcused)
        endProbe(of: operation)
    }

    /// What may have been a probe has ended, and what it found out is noted.
    func endProbe(of operation: DownloadOperation) {
        if operation.endProbe() { governor?.probeEnded(operation.host) }
    }

    /// Hosts whose time has come are asked for again.
    func wake(now: Double) {
        shares?.wake(now: now)
        guard let governor else { return }
        while let host = governor.nextDue(now: now) { queue.letGo(host: host) }
    }

    /// When ``wake(now:)`` has something to do; infinity: never by itself.
    var nextWake: Double { min(governor?.nextWake ?? .infinity, shares?.nextWake ?? .infinity) }

    /// What an operation in the queue waits for.
    func state(of operation: DownloadOperation, at time: Double) -> DownloadState {
        let host = operation.host
        let isAtLimit = queue.isAtLimit(host: host)
        var waiting = DownloadState(operation, isAtLimit ? .waitingForHost : .waitingForSlot, at: time)
        if isAtLimit, let reason = governor?.reason(for: host, now: time) {
            waiting.reason = reason.text
            waiting.remaining = reason.remaining
        }
        return waiting
    }

    // MARK: Other processes

    /// What to ask and to tell others; it is on its way from here on.
    func takeCalls() -> (wishes: [HostWish], shares: [HostShareWish], news: [HostNews]) {
        guard governor?.hasCalls == true || shares?.hasWishes == true else { return ([], [], []) }
        let calls = governor?.takeCalls { queue.waitingCount(host: $0) }
        return (calls?.wishes ?? [], shares?.takeWishes { load(of: $0) } ?? [], calls?.news ?? [])
    }

    /// How many transfers to a host it may have now; nil: as before.
    func grantShare(of host: String, _ granted: Int?, now: Double) {
        shares?.grant(host, granted, load: load(of: host), now: now, random: Double.random(in: 0...1))
        queue.letGo(host: host)
    }
}

internal import Threading

/// Selects the next operation by host queue, governor, and this process's share of a host. Used only on the downloader's thread.
final class HostSchedule {
    private var configuration: ImageDownloader.Configuration
    private var queue: DownloadQueue<DownloadOperation>
    private let addresses = AddressSlots()
    /// Decides when hosts may be requested; nil: as soon as there is a slot.
    private(set) var governor: HostGovernor?
    /// Its share of the transfers that all processes together may have to a host; nil: not shared.
    private var shares: HostShares?
    private let proven: ProvenSites
    private let silent: SilentHosts
    /// Transfers by host that do not count for its window.
    private var uncounted: [ByteText: Int] = [:]

    init(_ configuration: ImageDownloader.Configuration, _ proven: ProvenSites, _ silent: SilentHosts) {
        self.proven = proven
        self.silent = silent
        self.configuration = configuration
        queue = DownloadQueue(order: configuration.executionOrder)
        governor = Self.governor(configuration.hosts, isShared: false, silent)
    }

    private static func governor(_ policy: HostPolicy, isShared: Bool, _ silent: SilentHosts) -> HostGovernor? {
        policy.isIdle ? nil : HostGovernor(policy, isShared: isShared, silent: silent)
    }

    /// Applies order and host policy; the state of hosts is kept.
    func apply(_ new: ImageDownloader.Configuration) {
        if new.executionOrder != configuration.executionOrder { queue.reorder(new.executionOrder) }
        if new.hosts != configuration.hosts {
            if let governor, !new.hosts.isIdle {
                governor.renew(new.hosts)
            } else {
                governor = Self.governor(new.hosts, isShared: shares != nil, silent)
            }
        }
        configuration = new
    }

    /// Starts coordinating with other processes that use the same hosts. Call it before anything is enqueued.
    func share(_ shares: HostShares) {
        self.shares = shares
        governor = Self.governor(configuration.hosts, isShared: true, silent)
    }

    // MARK: Operations

    /// * `rate`: requests per second that its site asks for; nil: it does not.
    /// * `address`: what the name of its hop resolves to; nil: not known before the transfer, unless the URL has a literal address.
    func enqueue(
        _ operation: DownloadOperation, at place: QueuePlace, rate asked: Double?, address: IPAddress? = nil
    ) {
        let limits = HostLimits(
            transfers: operation.profile.transferLimit(to: operation.site), rate: operation.profile.requestsPerSecond,
            siteRate: asked)
        // A profile with its own rate needs a governor even if the configuration does not.
        if governor == nil, limits.rate != nil {
            governor = HostGovernor(configuration.hosts, isShared: shares != nil, silent: silent)
        }
        operation.wait(
            for: operation.site.host, address: limitAddress(of: operation, address), now: MonotonicClock.now)
        operation.wait(
            at: queue.enqueue(
                operation, host: operation.host, priority: operation.parameters.priority, limits: limits, at: place))
        // Its host may be blocked by others, which go to another address.
        if let address = operation.address,
            addresses.mayBegin(address, of: operation.host, shares: shares, now: MonotonicClock.now)
        {
            queue.unblock(host: operation.host)
        }
    }

    /// The operation's address, for which it waits from here on; nil: it has no limit.
    private func limitAddress(of operation: DownloadOperation, _ address: IPAddress?) -> LimitedAddress? {
        let site = operation.site
        guard let limit = operation.profile.addressLimit(of: site), let address = address ?? site.address else {
            return nil
        }
        return addresses.enqueue(AddressSlots.endpoint(of: address, port: operation.request.port), limit: limit)
    }

    /// The next operation whose host is available; holds a slot of it until ``release(_:)``. `refusal`: its error if the host was given up.
    /// `isAwaited`: whether others wait for its host.
    func next() -> (operation: DownloadOperation, refusal: WebImageError?, isAwaited: Bool)? {
        while true {
            if let (operation, refusal) = nextOfHosts() {
                if let address = operation.slotAddress { addresses.begin(address) }
                return (operation, refusal, queue.load(host: operation.host).waiting > 0)
            }
            guard let host = addresses.takeHost(shares: shares, now: MonotonicClock.now) else { return nil }
            queue.unblock(host: host)
        }
    }

    private func nextOfHosts() -> (operation: DownloadOperation, refusal: WebImageError?)? {
        guard governor != nil || shares != nil || !addresses.isEmpty else {
            guard let next = queue.next() else { return nil }
            next.takeSlot(isProbe: false)
            return (next, nil)
        }
        let addresses = addresses
        let (governor, shares, proven, uncounted, now) = (governor, shares, proven, uncounted, MonotonicClock.now)
        var isProbe = false
        func mayStart(_ operation: DownloadOperation) -> Bool {
            addresses.mayBegin(operation.address, of: operation.host, shares: shares, now: now)
        }
        func prefers(_ host: String) -> ((DownloadOperation) -> Bool)? {
            Self.preferred(by: governor?.admission(to: host) ?? .regular)
        }
        let next = queue.next(where: mayStart, prefers: prefers) { load in
            isProbe = false
            let (host, limits) = (load.host, load.limits)
            guard shares?.mayBegin(host, limit: limits.transfers, running: load.pooled, now: now) ?? true else {
                return .no
            }
            guard let governor else { return .next }
            if governor.isAbandoned(host, now: now) {
                return .first(where: { Self.refusal(of: $0, by: governor, proven, now: now) != nil })
            }
            let counted = load.running - (uncounted[host] ?? 0)
            guard
                governor.mayBegin(
                    host, rate: limits.rate, siteRate: limits.siteRate, running: counted, waiting: load.waiting,
                    now: now)
            else {
                guard governor.probes(of: host, standingForURLSince: -.infinity, wasTried: true, now: now) > 0
                else { return .no }
                return .first(where: { Self.refusal(of: $0, by: governor, proven, now: now) != nil })
            }
            let admission = governor.admission(to: host)
            isProbe = admission == .probe
            return Self.preferred(by: admission).map { HostAdmission.any(of: $0) } ?? .next
        }
        guard let next else { return nil }
        // A probe is sent however long the host has been silent.
        let refusal = isProbe ? nil : governor.flatMap { Self.refusal(of: next, by: $0, proven, now: now) }
        if let governor, refusal == nil { next.add(triesByProbes: Self.triesByProbes(of: next, governor, proven, now)) }
        next.takeSlot(isProbe: isProbe)
        if next.windowUse == .isExempt { self.uncounted[next.host, default: 0] += 1 }
        return (next, refusal)
    }

    /// The operations that are to be next while a host has any; nil: all are alike.
    private static func preferred(by admission: HostGovernor.Admission) -> ((DownloadOperation) -> Bool)? {
        switch admission {
        case .regular: return nil
        case .probe: return { !$0.hostWasSilent }
        case .afterRefusal: return { $0.tries > 1 }
        }
    }

    private static func refusal(
        of operation: DownloadOperation, by governor: HostGovernor, _ proven: ProvenSites, now: Double
    ) -> WebImageError? {
        // The try that waits here is counted already.
        let left = operation.profile.retryPolicy.maxTries - (operation.countedTries - 1)
        return governor.refusal(
            of: operation.host, arrivedAt: operation.since, wasTried: operation.hostWasSilent,
            triesLeft: proven.contains(operation.request.origin) ? nil : left, now: now)
    }

    /// How many tries of a waiting URL were made by others: while a host that has never completed a body is on hold, one probe stands for
    /// all that wait. A host that has may be restarting: its URLs wait as long as ``HostPolicy/waitLimit`` says.
    private static func triesByProbes(
        of operation: DownloadOperation, _ governor: HostGovernor, _ proven: ProvenSites, _ now: Double
    ) -> Int {
        guard !proven.contains(operation.request.origin) else { return 0 }
        return governor.probes(
            of: operation.host, standingForURLSince: operation.since, wasTried: operation.hostWasSilent, now: now)
    }

    /// * `comesFirst`: whether the host's next operation comes before those of other hosts.
    func release(_ operation: DownloadOperation, comesFirst: Bool = false) {
        guard let (slot, address, windowUse) = operation.releaseSlot() else { return }
        let (now, host, limit) = (MonotonicClock.now, slot.hostName, slot.limits.transfers)
        if windowUse != .counts { uncounted[host] = uncounted[host].flatMap { $0 > 1 ? $0 - 1 : nil } }
        queue.release(slot, comesFirst: comesFirst)
        shares?.didEnd(host, limit: limit, load: load(of: host, limit), now: now)
        if let address { addresses.end(address, shares: shares, now: now) }
    }

    /// An operation that waits has ended: it leaves at once, with what is reserved for it.
    func leave(_ operation: DownloadOperation) {
        guard let place = operation.leaveQueue() else { return }
        let (now, host, limit) = (MonotonicClock.now, place.hostName, place.limits.transfers)
        queue.remove(place)
        shares?.didLeave(host, limit: limit, load: load(of: host, limit), now: now)
        if let address = operation.address { addresses.leave(address, shares: shares, now: now) }
    }

    /// Of the operations of a host, or of an address by the name of its share, that have a limit of transfers.
    private func load(of host: String, _ limit: Int) -> HostShares.Load {
        addresses.load(ofShare: host, limit: limit) ?? queue.load(host: host) { $0.transfers == limit }
    }

    // MARK: Results of requests

    /// Records a response, once, or with its status if that is an error. Call it before the transfer's slot is released.
    /// * `firstByte`: seconds to its first byte; nil if not meaningful.
    /// * `goesOn`: whether the body is still coming: the transfer no longer counts for the host's window.
    func didAnswer(
        _ operation: DownloadOperation, _ error: WebImageError?, firstByte: @autoclosure () -> Double?,
        goesOn: Bool = false
    ) {
        guard let governor, let host = operation.slot?.hostName,
            operation.windowUse != .wasAnswered || error?.httpStatus != nil
        else { return }
        if goesOn {
            if operation.windowUse == .counts { uncounted[host, default: 0] += 1 }
            operation.wasAnswered()
            queue.letGo(host: host)
        }
        governor.didAnswer(
            host, error, isRetry: operation.tries > 1, firstByte: firstByte(), began: operation.progress.hopStart,
            running: queue.load(host: host).running, maxWait: operation.profile.maxRetryAfter,
            now: MonotonicClock.now)
    }

    /// Records a failed try. If the host cannot be connected to, the URL is excused and waits with the others; if it received the
    /// request, the URL itself may be what it never answers.
    /// * `excusesConnects`: whether a failed connect says nothing of its host either.
    func didFail(_ operation: DownloadOperation, _ error: WebImageError, excusesConnects: Bool) {
        let progress = operation.progress
        if excusesConnects, error.code == .cannotConnectToHost, operation.mayBeExcused {
            operation.didFail(hostWasSilent: false, isExcused: true, isSilentItself: operation.isSilentItself)
            return endProbe(of: operation)
        }
        guard let governor, HostHealth.isUnresponsive(error, bytes: progress.bytes) else {
            operation.didFail(hostWasSilent: false, isExcused: false, isSilentItself: false)
            return endProbe(of: operation)
        }
        let blame = governor.didFail(
            operation.host, error, wasReached: progress.requestWasSent, isKnown: operation.isSilentItself,
            began: progress.hopStart, now: MonotonicClock.now)
        operation.didFail(
            hostWasSilent: true,
            isExcused: blame == .host && !progress.requestWasSent && proven.contains(operation.request.origin),
            isSilentItself: blame == .url || operation.isSilentItself)
        endProbe(of: operation)
    }

    /// Ends the operation's probe, if it was one, after its result was recorded.
    func endProbe(of operation: DownloadOperation) {
        if operation.endProbe() { governor?.probeEnded(operation.host) }
    }

    func wake(now: Double) {
        shares?.wake(now: now)
        guard let governor else { return }
        while let host = governor.nextDue(now: now) { queue.letGo(host: host) }
    }

    /// When ``wake(now:)`` is due; infinity: never by itself.
    var nextWake: Double { min(governor?.nextWake ?? .infinity, shares?.nextWake ?? .infinity) }

    func state(of operation: DownloadOperation, at time: Double) -> DownloadState {
        let isAtLimit = operation.place.map { queue.isWaitingForHost($0) } ?? false
        var waiting = DownloadState(operation, isAtLimit ? .waitingForHost : .waitingForSlot, at: time)
        guard isAtLimit else { return waiting }
        let reason = governor?.reason(for: operation.host, rate: operation.place?.limits.rate, now: time)
        // What the governor does not know is the host's limit, or the share that other processes leave of it.
        waiting.hostWait = reason?.kind ?? .transfers
        if let reason {
            waiting.reason = reason.text
            waiting.remaining = reason.remaining
        } else if let address = operation.address, address.isFull {
            waiting.reason = "other transfers to \(address.endpoint)"
        }
        return waiting
    }

    // MARK: Other processes

    /// Returns requests and reports for others, and marks them as sent.
    func takeMessages() -> (hostRequests: [HostSlotRequest], shares: [HostShareRequest], news: [HostReport]) {
        let calls = governor?.takeMessages { host, rate in queue.load(host: host) { $0.uses(rate) }.waiting }
        return (calls?.hostRequests ?? [], shares?.takeRequests { load(of: $0, $1) } ?? [], calls?.news ?? [])
    }

    /// Sets the number of transfers to a host that are granted now; nil: unchanged.
    func grant(_ request: HostShareRequest, _ granted: Int?, now: Double) {
        let (host, limit) = (request.host, request.limit)
        shares?.grant(
            host, limit: limit, granted, load: load(of: host, limit), now: now, random: Double.random(in: 0...1))
        queue.letGo(host: host)
        addresses.didGrant(share: host)
    }
}

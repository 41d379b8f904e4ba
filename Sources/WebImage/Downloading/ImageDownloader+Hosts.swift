internal import Threading

// How the downloader keeps to its policy of hosts: what it asks its governor, and what it tells it.
extension ImageDownloader {
    /// What counts as the host of an operation's hop.
    func host(of operation: DownloadOperation) -> String {
        let policy = configuration.hosts
        return governor == nil && policy.groups.isEmpty ? operation.request.host : policy.host(of: operation.request)
    }

    /// The next operation whose host may be asked now.
    func nextToBegin() -> DownloadOperation? {
        guard governor != nil || shares != nil else { return queue.next() }
        let (governor, now) = (governor, MonotonicClock.now)
        // Apart from the queue, which asks it while it changes itself.
        var shares = shares
        self.shares = nil
        defer { self.shares = shares }
        var isProbe = false
        let next = queue.next { host, limit, running, waiting in
            isProbe = false
            guard shares?.mayBegin(host, limit: limit, running: running, now: now) ?? true else { return .no }
            guard let governor else { return .next }
            if governor.isGivenUp(host, now: now) {
                return .first(where: { $0.refusal(by: governor, now: now) != nil })
            }
            guard governor.mayBegin(host, running: running, waiting: waiting, now: now) else { return .no }
            isProbe = governor.isProbe
            return isProbe ? .any(of: { !$0.metSilence }) : .next
        }
        next?.isProbe = isProbe
        return next
    }

    /// Why an operation ends without a request: its host was given up, or its site's certificate refused.
    func refusal(of operation: DownloadOperation) -> WebImageError? {
        let now = MonotonicClock.now
        let untrusted = asksForTrust(operation) ? untrusted.refusal(of: operation.request.origin, now: now) : nil
        // A probe finds out whether the host is there, however long it was not.
        let givenUp = operation.isProbe ? nil : governor.flatMap { operation.refusal(by: $0, now: now) }
        guard var error = untrusted ?? givenUp else { return nil }
        error.attempts = operation.attempts - 1
        return error
    }

    private func asksForTrust(_ operation: DownloadOperation) -> Bool {
        !untrusted.isEmpty && operation.request.scheme == "https"
            && !operation.options.contains(.allowInvalidSSLCertificates)
    }

    /// A transfer ended: with a certificate that curl did not verify the site's other URLs end, too, those that wait for a connection
    /// to it at once. curl's codes for that: PEER_FAILED_VERIFICATION, SSL_ISSUER_ERROR, SSL_INVALIDCERTSTATUS.
    func noteCertificate(of operation: DownloadOperation, _ error: WebImageError) {
        let site = operation.request.origin
        guard error.code == .secureConnectionFailed, [60, 83, 91].contains(error.underlyingCode),
            untrusted.didRefuse(
                site, error, isDelivering: delivering.contains(operation.request.origin), now: MonotonicClock.now)
        else { return }
        for other in running
        where other.request.origin == site && !other.progress.requestWasSent && asksForTrust(other) {
            stopTransfer(of: other)
            var error = error
            error.attempts = other.attempts
            complete(other, .failure(error))
        }
    }

    /// Hosts whose time has come are asked for again.
    func letHostsGo() {
        shares?.wake(now: now)
        guard let governor else { return }
        while let host = governor.nextDue(now: now) { queue.letGo(host: host) }
    }

    /// A response came. Before its transfer gives back its slots.
    func noteAnswer(of operation: DownloadOperation, _ error: WebImageError?, firstByte: Double?) {
        if asksForTrust(operation) { untrusted.didTrust(operation.request.origin) }
        guard let governor, let host = operation.slotHost else { return }
        governor.didAnswer(
            host, error, firstByte: firstByte, began: operation.progress.hopStart,
            running: queue.runningCount(host: host), now: MonotonicClock.now)
    }

    /// What may have been a probe has ended, and what it found out is noted.
    func endProbe(of operation: DownloadOperation) {
        guard operation.isProbe else { return }
        operation.isProbe = false
        governor?.probeEnded(operation.host)
    }

    /// A try failed; true where nobody was there to answer, and the URL is to wait with the others.
    func noteSilence(of operation: DownloadOperation, _ error: WebImageError) -> Bool {
        guard let governor, HostGovernor.isSilence(error, bytes: operation.progress.bytes) else { return false }
        return governor.didFail(
            operation.host, error, wasReached: operation.progress.requestWasSent, began: operation.progress.hopStart,
            now: MonotonicClock.now)
    }
}

extension DownloadOperation {
    /// The error it ends with where its host was given up, and it with its host.
    fileprivate func refusal(by governor: HostGovernor, now: Double) -> WebImageError? {
        governor.refusal(of: host, cameAt: since, wasAsked: metSilence, now: now)
    }
}

/// What a downloader wants to know of others, and has to tell them.
package struct HostCalls: Sendable {
    /// Instants it wants to reserve.
    package var wishes: [HostWish]
    /// Hosts of whose transfers it wants a part, or another one.
    package var shares: [HostShareWish]
    /// What it found out.
    package var news: [HostNews]
    /// Sites whose robots.txt it wants to know.
    package var sites: [RobotsSite]
    /// What it has read of such files.
    package var rules: [RobotsNote]
}

/// Who waits for ``ImageDownloader/nextHostCalls()``.
struct HostCaller {
    let continuation: CheckedContinuation<HostCalls?, Never>
}

// The same hosts are asked by other processes, too.
extension ImageDownloader {
    /// From now on instants are reserved where all processes reserve theirs, a limit of a host's transfers is that of all of them together,
    /// and what is learnt of hosts and sites is told to them, by whoever takes ``nextHostCalls()``.
    /// * `rate`: bytes of bodies a second that all of them have together; nil: no such limit.
    package func shareHosts(limitRate rate: Int? = nil) {
        isShared = true
        shares = HostShares()
        sharedRate = rate
        governor?.isShared = true
        robots?.isShared = true
        if rate != nil { bandwidth = configuration.bandwidth(shared: rate) }
    }

    /// Whether news of hosts concern it.
    package var governsHosts: Bool { governor != nil }

    /// Waits until something is to be asked or told; nil where the task is cancelled. One call at a time.
    package func nextHostCalls() async -> HostCalls? {
        guard hostCaller == nil else { return nil }
        if hasHostCalls { return takeHostCalls() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled || isInvalidated {
                    continuation.resume(returning: nil)
                } else {
                    hostCaller = HostCaller(continuation: continuation)
                }
            }
        } onCancel: {
            Task { await self.endHostCaller() }
        }
    }

    private func endHostCaller() {
        hostCaller?.continuation.resume(returning: nil)
        hostCaller = nil
    }

    private var hasHostCalls: Bool {
        isShared
            && (governor?.hasCalls == true || shares?.hasWishes == true || robots?.hasCalls == true
                || bandwidth?.wantsMore == true)
    }

    /// Hands out what has come together.
    func callAboutHosts() {
        guard let caller = hostCaller, hasHostCalls else { return }
        hostCaller = nil
        caller.continuation.resume(returning: takeHostCalls())
    }

    private func takeHostCalls() -> HostCalls {
        let calls = governor?.takeCalls { queue.waitingCount(host: $0) }
        let pages = robots?.takeCalls()
        var wishes = calls?.wishes ?? []
        if let wish = bandwidth?.takeWish() { wishes.append(wish) }
        return HostCalls(
            wishes: wishes, shares: shares?.takeWishes { load(of: $0) } ?? [], news: calls?.news ?? [],
            sites: pages?.sites ?? [], rules: pages?.notes ?? [])
    }

    /// The answers to wishes, in their order; nil: none now. Times are those of `MonotonicClock`.
    package func grant(_ answers: [(host: String, reservation: HostReservation?)]) {
        let now = MonotonicClock.now
        for answer in answers {
            if answer.host == BandwidthLease.name {
                bandwidth?.grant(answer.reservation)
            } else {
                governor?.grant(answer.host, answer.reservation, now: now)
            }
        }
    }

    private func load(of host: String) -> HostShares.Load {
        (queue.runningCount(host: host), queue.waitingCount(host: host))
    }

    /// How many transfers to each host it may have now, in answer to its wishes; nil: no answer, as it was.
    package func grantShares(_ answers: [(host: String, granted: Int?)]) {
        let now = MonotonicClock.now
        for (host, granted) in answers {
            shares?.grant(host, granted, load: load(of: host), now: now, random: Double.random(in: 0...1))
            queue.letGo(host: host)
        }
    }

    /// Says of every host again how many transfers it has: others may have taken it for dead.
    package func sayHostSharesAgain() { shares?.sayAgain() }

    /// What is known of all hosts by all processes.
    package func adoptHosts(_ all: [HostNews]) { governor?.adopt(all, now: MonotonicClock.now) }

    /// Changes how many requests a second a host gets, where any limit was set at the start.
    package func setRequestsPerSecond(_ rate: Double?) { governor?.rate = rate }
}

/// Observed state of a host: responsiveness, back-off requests, and speed.
struct HostHealth {
    /// Consecutive failures: no name, no connection, no response.
    private(set) var failures = 0
    /// Start of the hold because of failures.
    private(set) var unresponsiveSince: Double?
    /// Nothing starts before this time.
    private(set) var holdUntil = -Double.infinity
    private(set) var refusals = 0
    /// The last error, if the last response was one.
    private(set) var lastError: WebImageError?
    /// The failure that started the hold, whatever the probes end with.
    private(set) var cause: WebImageError?
    var isProbing = false
    /// Whether the unanswered request had been sent: some servers never answer some URLs.
    private var wasReached = false
    /// Start times of the last failed probes, at most ``mostProbes``: requests to a host on hold that it left unanswered, or answered with
    /// another back-off request.
    private var failedProbes: [Double] = []
    private(set) var answeredAt = -Double.infinity
    /// Reduced limit of concurrent transfers, if any.
    private(set) var window: Double?
    private var probes = 0
    private var unavailable = 0
    private var refusedAt = -Double.infinity
    private var fastest = Double.infinity
    private var smoothed = 0.0
    private var answersSinceChange = 0

    /// The longest pause not requested by the host, in seconds.
    static let longestPause = 60.0
    /// The longest pause in seconds after 503 without Retry-After, and between probes that connect but get no response: if only URLs are
    /// left that always end so, each of their tries waits for it.
    static let maxPauseOfReached = 8.0
    /// Failed probes after which a URL ends without its own request, if the host accepts connections.
    private static let evidence = 3
    private static let mostProbes = 16
    /// Seconds without a back-off request after which pauses start with the shortest again.
    static let backoffResetAfter = 30.0
    /// Shorter times to the first byte never count as slow.
    private static let slow = 1.0
    /// A wider window means no limit.
    private static let wide = 64.0

    /// The measured latency while concurrency is reduced because of it.
    var slowness: HostReport.Latency? {
        guard isSlow, window != nil else { return nil }
        return HostReport.Latency(now: smoothed, best: fastest)
    }

    /// Whether it asked for back-off, and has not answered otherwise for a while.
    var isBusy: Bool { refusals > 0 }

    /// Whether there is nothing to remember.
    var isGood: Bool { failures == 0 && unresponsiveSince == nil && refusals == 0 && window == nil }

    /// Whether regular requests (not only a probe) may start now.
    func mayBegin(running: Int, now: Double) -> Bool {
        if now < holdUntil { return false }
        if unresponsiveSince != nil { return !isProbing }
        return window.map { running < max(1, Int($0)) } ?? true
    }

    /// Whether its URLs have waited long enough, and no probe is due.
    func isAbandoned(waitLimit: Double, now: Double) -> Bool {
        guard let unresponsiveSince, now >= unresponsiveSince + waitLimit else { return false }
        return now < holdUntil || isProbing
    }

    /// Whether a URL fails together with a host that is given up. If no connection is possible, all do. If only responses are missing, a
    /// URL fails if it was itself not answered, or has waited for several probes: other URLs prove nothing about it.
    /// * `since`: arrival of the URL.
    /// * `wasTried`: whether its own last try got no response.
    func isAbandoned(since: Double, wasTried: Bool) -> Bool {
        guard wasReached, !wasTried else { return true }
        return failedProbes(since: since) >= Self.evidence
    }

    /// How many probes stood for a URL: those that have failed since its arrival; if only responses are missing, not before they are
    /// enough to say something of a URL that was not tried.
    func probes(standingForURLSince since: Double, wasTried: Bool) -> Int {
        let count = failedProbes(since: since)
        return unresponsiveSince == nil || isAbandoned(since: since, wasTried: wasTried) ? count : 0
    }

    private func failedProbes(since: Double) -> Int { failedProbes.count { $0 >= since } }

    private mutating func addFailedProbe(_ began: Double) {
        failedProbes = failedProbes.suffix(Self.mostProbes - 1) + [began]
    }

    /// Whether a failure means that the host is not responding, or stops everything while it does: each flood takes seconds of the thread that
    /// runs all transfers.
    /// * `bytes`: bytes received before it.
    static func isUnresponsive(_ error: WebImageError, bytes: Int) -> Bool {
        switch error.code {
        case .cannotFindHost, .cannotConnectToHost: true
        case .timedOut: bytes == 0
        case .connectionLost: error.isFlood
        default: false
        }
    }

    /// Records a missing response; true if other processes should know.
    /// * `wasReached`: whether the request was sent.
    mutating func didFail(
        _ error: WebImageError, wasReached: Bool, began: Double, limit: Int?, now: Double, jitter: Double
    ) -> Bool {
        guard let limit else { return false }
        failures += 1
        if unresponsiveSince != nil {
            // Requests started before the hold say nothing new.
            guard isProbing else { return false }
            isProbing = false
            probes += 1
            lastError = error
            self.wasReached = self.wasReached && wasReached
            addFailedProbe(began)
            let longest = self.wasReached ? Self.maxPauseOfReached : Self.longestPause
            holdUntil = now + Self.pause(probes, jitter, atMost: longest)
            return true
        }
        lastError = error
        guard failures >= limit else { return false }
        unresponsiveSince = now
        cause = error
        self.wasReached = wasReached
        failedProbes = []
        probes = 0
        holdUntil = now + Self.pause(0, jitter)
        return true
    }

    /// Records a response; true if other processes should know.
    /// * `error`: for an unsuccessful status.
    /// * `isRetry`: whether its URL had been requested before. Some servers answer the first request for each URL with 503, so only a retry
    ///   is a failed probe.
    /// * `firstByte`: seconds from the start of the request; nil if not measured.
    /// * `running`: running transfers to it, including this one.
    mutating func didAnswer(
        _ error: WebImageError?, isRetry: Bool, firstByte: Double?, began: Double, running: Int, backsOff: Bool,
        maxWait: Double, now: Double, jitter: @autoclosure () -> Double
    ) -> Bool {
        failures = 0
        isProbing = false
        answeredAt = now
        var isNews = false
        if unresponsiveSince != nil {
            unresponsiveSince = nil
            holdUntil = -.infinity
            lastError = nil
            cause = nil
            // Resume gently: a host that has just restarted may not bear the full load at once.
            window = 2
            isNews = true
        }
        guard backsOff else {
            window = nil
            return isNews
        }
        let status = error?.httpStatus
        unavailable = status == 503 ? unavailable + 1 : 0
        if let error, status == 429 || error.retryAfter != nil || unavailable >= 3 {
            // Requests already running when it first asked for back-off count as one.
            guard began >= refusedAt else { return isNews }
            if refusals == 0 { failedProbes = [] } else if isRetry { addFailedProbe(began) }
            refusals += 1
            refusedAt = now
            lastError = error
            let pause = error.retryAfter.map { min($0, maxWait) * (1 + jitter() / 10) }
            let longest = status == 429 ? Self.longestPause : Self.maxPauseOfReached
            holdUntil = max(holdUntil, now + (pause ?? Self.pause(refusals - 1, jitter(), atMost: longest)))
            window = max(1, Double(running) / 2)
            return true
        }
        // What it answers otherwise is no back-off.
        failedProbes = []
        if refusals > 0, now - refusedAt >= Self.backoffResetAfter {
            refusals = 0
            lastError = nil
            isNews = true
        }
        if let firstByte { measure(firstByte, running: running) }
        widen()
        return isNews
    }

    private mutating func measure(_ firstByte: Double, running: Int) {
        fastest = min(fastest, firstByte)
        smoothed = smoothed == 0 ? firstByte : 0.8 * smoothed + 0.2 * firstByte
        answersSinceChange += 1
        guard isSlow, running >= 2, answersSinceChange >= running else { return }
        window = max(2, (window ?? Double(running)) * 0.75)
        answersSinceChange = 0
    }

    private var isSlow: Bool { smoothed > Self.slow && smoothed > 4 * fastest }

    private mutating func widen() {
        guard let now = window, !isSlow else { return }
        // As in TCP: plus one per response, or plus one per round after a back-off request.
        let wider = now + (refusals > 0 || smoothed > Self.slow ? 1 / now : 1)
        window = wider > Self.wide ? nil : wider
    }

    mutating func adopt(_ news: HostReport) {
        // A later end means that a probe of another process has failed, which began after the hold.
        if news.state == .silent, unresponsiveSince != nil, news.until > holdUntil + Self.minPause / 2 {
            addFailedProbe(holdUntil)
        }
        lastError = news.error
        holdUntil = max(holdUntil, news.until)
        switch news.state {
        case .silent:
            if unresponsiveSince == nil {
                // Of lost connections only a flood means silence.
                wasReached = news.error?.code == .timedOut || news.error?.code == .connectionLost
                failedProbes = []
            }
            unresponsiveSince = min(unresponsiveSince ?? news.since, news.since)
            cause = cause ?? news.error
        case .busy:
            refusals = max(refusals, 1)
            refusedAt = max(refusedAt, news.since)
        case .slow, .good: break
        }
    }

    /// Another process found it slow: use the same window until its own responses say otherwise.
    mutating func adopt(_ latency: HostReport.Latency, window others: Int) {
        fastest = min(fastest, latency.best)
        if smoothed == 0 { smoothed = latency.now }
        window = min(window ?? .infinity, max(2, Double(others)))
        answersSinceChange = 0
    }

    mutating func resetHealth() {
        self = HostHealth()
        window = 2
    }

    private static let minPause = 1.0

    /// 1 s, doubled each time, plus up to 10 % so that processes do not retry in step.
    private static func pause(_ times: Int, _ jitter: Double, atMost longest: Double = longestPause) -> Double {
        var pause = minPause
        for _ in 0..<max(0, times) where pause < longest { pause *= 2 }
        return min(pause, longest) * (1 + jitter / 10)
    }
}

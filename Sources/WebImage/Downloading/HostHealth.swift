/// What a host has shown of itself: whether it answers, whether it asked to be left alone, and how fast it is.
struct HostHealth {
    /// Failures in a row: no name, no connection, no answer.
    private(set) var failures = 0
    /// Since when it is left alone because of them.
    private(set) var silentSince: Double?
    /// Nothing begins before.
    private(set) var holdUntil = -Double.infinity
    /// Times in a row that it asked to be left alone.
    private(set) var refusals = 0
    /// What it said or did last, where that was no good.
    private(set) var lastError: WebImageError?
    /// Why it is left alone: the failure that made it so, whatever its probes end with.
    private(set) var cause: WebImageError?
    /// Whether the one request to a silent host is on its way.
    var isProbing = false
    /// Whether what was silent had a connection and a request: some servers never answer some URLs.
    private var wasReached = false
    /// When the last probes that nobody answered began, ``evidence`` of them at most.
    private var inVain: [Double] = []
    /// When it answered last.
    private(set) var answeredAt = -Double.infinity
    /// Transfers at once, where it is to have fewer than allowed.
    private(set) var window: Double?
    private var probes = 0
    private var unavailable = 0
    private var refusedAt = -Double.infinity
    private var fastest = Double.infinity
    private var smoothed = 0.0
    private var answersSinceChange = 0

    /// The longest pause that is not asked for by the host, in seconds.
    static let longestPause = 60.0
    /// The longest pause in seconds after 503 without Retry-After, and between probes that are connected and get no answer: where nothing
    /// is left of a host but URLs that always end so, each of their tries waits for it.
    static let longestPauseOfReached = 8.0
    /// Probes in vain that end a URL which was never asked for itself, where the host takes connections.
    private static let evidence = 3
    /// A host that has been quiet for so long begins with the shortest pause again.
    static let forgivenAfter = 30.0
    /// First bytes that come sooner are never too slow.
    private static let slow = 1.0
    /// More at once are no limit.
    private static let wide = 64.0

    /// What it is like while it answers slowly, and is asked by fewer at once for that.
    var slowness: HostNews.Latency? {
        guard isSlow, window != nil else { return nil }
        return HostNews.Latency(now: smoothed, best: fastest)
    }

    /// Whether nothing is to be remembered of it.
    var isGood: Bool { failures == 0 && silentSince == nil && refusals == 0 && window == nil }

    /// Whether more begins than a probe.
    func mayBegin(running: Int, now: Double) -> Bool {
        if now < holdUntil { return false }
        if silentSince != nil { return !isProbing }
        return window.map { running < max(1, Int($0)) } ?? true
    }

    /// Whether its URLs have waited long enough, and no probe is due.
    func isGivenUp(patience: Double, now: Double) -> Bool {
        guard let silentSince, now >= silentSince + patience else { return false }
        return now < holdUntil || isProbing
    }

    /// Whether a URL ends with the host that is given up. Where nobody can connect, all do. Where only answers are missing, those that it
    /// did not answer, and those that have waited for several probes since they came: others' silence is no proof against them.
    /// * `since`: when the URL came.
    /// * `wasAsked`: whether its own last try had no answer.
    func isGivenUp(since: Double, wasAsked: Bool) -> Bool {
        guard wasReached, !wasAsked else { return true }
        return inVain.count == Self.evidence && inVain[0] >= since
    }

    /// Whether a failure says that nobody is there.
    /// * `bytes`: what came before it.
    static func isSilence(_ error: WebImageError, bytes: Int) -> Bool {
        switch error.code {
        case .cannotFindHost, .cannotConnectToHost: true
        case .timedOut: bytes == 0
        default: false
        }
    }

    /// It gave no answer; true where that changes what others should know.
    /// * `wasReached`: whether the request was sent.
    mutating func didFail(
        _ error: WebImageError, wasReached: Bool, began: Double, limit: Int?, now: Double, jitter: Double
    ) -> Bool {
        guard let limit else { return false }
        failures += 1
        if silentSince != nil {
            // What had begun before it was left alone says nothing new.
            guard isProbing else { return false }
            isProbing = false
            probes += 1
            lastError = error
            self.wasReached = self.wasReached && wasReached
            inVain = inVain.suffix(Self.evidence - 1) + [began]
            let longest = self.wasReached ? Self.longestPauseOfReached : Self.longestPause
            holdUntil = now + Self.pause(probes, jitter, atMost: longest)
            return true
        }
        lastError = error
        guard failures >= limit else { return false }
        silentSince = now
        cause = error
        self.wasReached = wasReached
        inVain = []
        probes = 0
        holdUntil = now + Self.pause(0, jitter)
        return true
    }

    /// It answered; true where that changes what others should know.
    /// * `error`: of a status that is no success.
    /// * `firstByte`: seconds from the request's begin; nil where nobody measured.
    /// * `running`: transfers that are under way to it, this one included.
    mutating func didAnswer(
        _ error: WebImageError?, firstByte: Double?, began: Double, running: Int, backsOff: Bool, longestWait: Double,
        now: Double, jitter: @autoclosure () -> Double
    ) -> Bool {
        failures = 0
        isProbing = false
        answeredAt = now
        var isNews = false
        if silentSince != nil {
            silentSince = nil
            holdUntil = -.infinity
            lastError = nil
            cause = nil
            // Whoever waited comes back gently: a host that has just started may not bear all at once.
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
            // Those that were on their way when it first said so say the same.
            guard began >= refusedAt else { return isNews }
            refusals += 1
            refusedAt = now
            lastError = error
            let pause = error.retryAfter.map { min($0, longestWait) * (1 + jitter() / 10) }
            let longest = status == 429 ? Self.longestPause : Self.longestPauseOfReached
            holdUntil = max(holdUntil, now + (pause ?? Self.pause(refusals - 1, jitter(), atMost: longest)))
            window = max(1, Double(running) / 2)
            return true
        }
        if refusals > 0, now - refusedAt >= Self.forgivenAfter {
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

    /// Four times as slow as it can be, and slow.
    private var isSlow: Bool { smoothed > Self.slow && smoothed > 4 * fastest }

    private mutating func widen() {
        guard let now = window, !isSlow else { return }
        // As TCP does: by one for each answer, and by one for each round where it has complained.
        let wider = now + (refusals > 0 || smoothed > Self.slow ? 1 / now : 1)
        window = wider > Self.wide ? nil : wider
    }

    /// What another process knows of it.
    mutating func adopt(_ news: HostNews) {
        lastError = news.error
        holdUntil = max(holdUntil, news.until)
        switch news.state {
        case .silent:
            if silentSince == nil {
                wasReached = news.error.code == .timedOut
                inVain = []
            }
            silentSince = min(silentSince ?? news.since, news.since)
            cause = cause ?? news.error
        case .busy:
            refusals = max(refusals, 1)
            refusedAt = max(refusedAt, news.since)
        case .slow, .good: break
        }
    }

    /// Another process found it slow: as few at once as there, until its own answers say otherwise.
    mutating func adopt(_ latency: HostNews.Latency, window others: Int) {
        fastest = min(fastest, latency.best)
        if smoothed == 0 { smoothed = latency.now }
        window = min(window ?? .infinity, max(2, Double(others)))
        answersSinceChange = 0
    }

    /// Another process had an answer.
    mutating func forgive() {
        self = HostHealth()
        window = 2
    }

    /// 1 s, doubled each time, with up to a tenth more so that processes do not come together.
    private static func pause(_ times: Int, _ jitter: Double, atMost longest: Double = longestPause) -> Double {
        var pause = 1.0
        for _ in 0..<max(0, times) where pause < longest { pause *= 2 }
        return min(pause, longest) * (1 + jitter / 10)
    }
}

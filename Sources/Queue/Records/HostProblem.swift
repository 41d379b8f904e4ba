internal import Redis
internal import Threading

/// A host that does not respond, asked for back-off, or is slow.
package struct HostProblem: Sendable, Equatable {
    package var host: String
    package var state: HostReport.State
    /// Seconds until its back-off ends; negative after that.
    package var remaining: Double
    /// Seconds since this state began.
    package var elapsed: Double
    /// Failures in a row; for a slow host, concurrent transfers per worker.
    package var failures: Int
    /// Of its last error; nil for a slow host.
    package var code: WebImageError.Code?
    /// Time to the first byte of a slow host.
    package var latency: HostReport.Latency?
    /// Why, in words.
    package var reason: String

    /// Nil for an invalid note. `now`: milliseconds since 1970.
    package init?(host: String, note: String, now: Int) {
        let parts = note.split(atByte: " ", maxSplits: 5, omittingEmptySubsequences: false)
        guard parts.count == 6, let state = HostReport.State(rawValue: String(parts[0])),
            let until = Int(plausible: parts[1]), let since = Int(plausible: parts[2]),
            let failures = Int(plausible: parts[3]), let code = Int(plausible: parts[4])
        else { return nil }
        if state == .slow {
            guard let best = Int(plausible: parts[5]) else { return nil }
            let latency = HostReport.Latency(now: Double(code) / 1000, best: Double(best) / 1000)
            (self.code, self.latency, reason) = (nil, latency, latency.text)
        } else {
            (self.code, latency, reason) = (WebImageError.Code(rawValue: code), nil, String(parts[5]))
        }
        self.host = host
        self.state = state
        remaining = Double(until - now) / 1000
        elapsed = Double(max(0, now - since)) / 1000
        self.failures = max(0, failures)
    }

    package var isInBackOff: Bool { state != .slow && remaining > 0 }

    /// Converted to this machine's monotonic clock.
    package var news: HostReport {
        let now = MonotonicClock.now
        return HostReport(
            host: host, state: state, until: now + remaining, since: now - elapsed, failures: failures,
            error: code.map { WebImageError($0, reason, isTransient: true) }, latency: latency)
    }
}

package struct HostReport: Sendable {
    package enum State: String, Sendable, CaseIterable {
        case silent
        /// Asked for back-off.
        case busy
        /// Responds, but far more slowly than its best.
        case slow
        case good
    }

    /// Time to first byte of a host in seconds: current, and best.
    package struct Latency: Sendable, Equatable {
        package var now: Double
        package var best: Double

        package init(now: Double, best: Double) {
            self.now = now
            self.best = best
        }

        package var text: String { "first bytes after \(milliseconds(now)) ms, \(milliseconds(best)) ms at best" }

        /// Milliseconds, as they travel between workers.
        package var fields: (now: Int, best: Int) { (milliseconds(now), milliseconds(best)) }

        private func milliseconds(_ seconds: Double) -> Int { Int(min(seconds, 86_400) * 1000) }
    }

    package var host: String
    package var state: State
    /// No request begins before this time, in seconds of CLOCK_MONOTONIC.
    package var until: Double
    package var since: Double
    /// Consecutive failures; for a slow host, the number of concurrent transfers of each process.
    package var failures: Int
    /// Why it is silent or busy; nil for a slow host.
    package var error: WebImageError?
    /// Of a slow host.
    package var latency: Latency?

    package init(
        host: String, state: State, until: Double, since: Double, failures: Int, error: WebImageError? = nil,
        latency: Latency? = nil
    ) {
        self.host = host
        self.state = state
        self.until = until
        self.since = since
        self.failures = failures
        self.error = error
        self.latency = latency
    }
}

package struct HostReport: Sendable {
    package enum State: String, Sendable {
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

        package init?(_ text: String) {
            let numbers = text.split { !$0.isASCII || !$0.isNumber }.compactMap { Int($0) }
            guard numbers.count == 2 else { return nil }
            self.init(now: Double(numbers[0]) / 1000, best: Double(numbers[1]) / 1000)
        }

        private func milliseconds(_ seconds: Double) -> Int { Int(min(seconds, 86_400) * 1000) }
    }

    package var host: String
    package var state: State
    /// No request begins before this time, in seconds of CLOCK_MONOTONIC.
    package var until: Double
    package var since: Double
    /// Consecutive failures; for a slow host, the number of concurrent transfers of each process.
    package var failures: Int
    package var error: WebImageError

    package init(
        host: String, state: State, until: Double, since: Double, failures: Int, error: WebImageError
    ) {
        self.host = host
        self.state = state
        self.until = until
        self.since = since
        self.failures = failures
        self.error = error
    }
}

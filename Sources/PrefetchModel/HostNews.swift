/// What processes tell each other of a host.
package struct HostNews: Sendable {
    /// How it is.
    package enum State: String, Sendable {
        /// It gives no answer.
        case silent
        /// It asked to be left alone.
        case busy
        /// It answers, but far more slowly than it can.
        case slow
        /// It answers again.
        case good
    }

    /// How long a host's first bytes take, in seconds: of late, and at best.
    package struct Latency: Sendable, Equatable {
        package var now: Double
        package var best: Double

        package init(now: Double, best: Double) {
            self.now = now
            self.best = best
        }

        /// As others are told.
        package var text: String { "first bytes after \(milliseconds(now)) ms, \(milliseconds(best)) ms at best" }

        /// Reads ``text``; nil for what is none.
        package init?(_ text: String) {
            let numbers = text.split { !$0.isASCII || !$0.isNumber }.compactMap { Int($0) }
            guard numbers.count == 2 else { return nil }
            self.init(now: Double(numbers[0]) / 1000, best: Double(numbers[1]) / 1000)
        }

        private func milliseconds(_ seconds: Double) -> Int { Int(min(seconds, 86_400) * 1000) }
    }

    package var host: String
    package var state: State
    /// Nothing begins before, in seconds by CLOCK_MONOTONIC.
    package var until: Double
    /// Since when it is so.
    package var since: Double
    /// Failures in a row; of a slow one transfers at once of each process.
    package var failures: Int
    /// What it did last.
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

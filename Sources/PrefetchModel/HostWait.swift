/// URLs of a worker that wait for one host although it has free slots.
package struct HostWait: Sendable, Equatable {
    package enum Reason: String, Sendable, CaseIterable {
        /// The limit of transfers to a host, of this worker or of all together.
        case transfers
        /// The limit of requests per second.
        case rate
        /// The host asked for back-off (429, 503, `Retry-After`).
        case backOff = "back-off"
        /// It does not respond and is only probed.
        case silent
        /// Its latency grows with more transfers.
        case slow
        /// Its robots.txt is being read.
        case robots
    }

    package var host: String
    package var reason: Reason
    /// URLs that wait.
    package var count: Int

    package init(host: String, reason: Reason, count: Int) {
        (self.host, self.reason, self.count) = (host, reason, count)
    }
}

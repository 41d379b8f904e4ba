internal import Redis

/// Why a worker is idle, other than a fault of an image or a pause.
package struct WorkerHold: Sendable, Equatable {
    /// The only reason so far: its disk does not respond.
    package static let disk = "disk"
    package static let reasonField = "held"
    package static let durationField = "held_ms"
    /// Its warning meanwhile.
    package static let text = "the disk of its cache does not answer; its jobs went back to the queue"

    package var reason: String
    /// Milliseconds since 1970 by Redis' clock.
    package var since: Int

    /// * `facts`: the fields of its record.
    /// - Returns: nil if nothing holds it.
    package init?(_ facts: [String: String]) {
        guard let reason = facts[Self.reasonField], !reason.isEmpty else { return nil }
        self.reason = reason
        func number(_ name: String) -> Int { max(0, facts[name].flatMap { Int(plausible: $0) } ?? 0) }
        since = max(0, number("beat") - number(Self.durationField))
    }
}

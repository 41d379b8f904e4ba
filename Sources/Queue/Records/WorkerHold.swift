/// Why a worker does nothing, where that is neither its own trouble with an image nor anybody's order.
package struct WorkerHold: Sendable, Equatable {
    /// The only reason there is: its disk does not answer.
    package static let disk = "disk"
    package static let reasonField = "held"
    package static let durationField = "held_ms"
    /// What it says of its trouble meanwhile.
    package static let text = "the disk of its cache does not answer; its jobs went back to the queue"

    /// ``disk``.
    package var reason: String
    /// Milliseconds since 1970 by Redis' clock.
    package var since: Int

    /// * `facts`: the fields of its record.
    /// - Returns: nil where nothing holds it.
    package init?(_ facts: [String: String]) {
        guard let reason = facts[Self.reasonField], !reason.isEmpty else { return nil }
        self.reason = reason
        since = max(
            0,
            (facts["beat"].flatMap { Int($0) } ?? 0)
                - max(0, facts[Self.durationField].flatMap { Int($0) } ?? 0))
    }
}

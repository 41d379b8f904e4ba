/// Back-off for reports of batches whose last one Redis refused: 1 s, doubled up to 30 s.
struct RefusedReports: Sendable {
    private struct Pause {
        var length = Duration.seconds(1)
        var end: ContinuousClock.Instant
    }

    private static let longest = Duration.seconds(30)

    private var pauses: [BatchIdentity: Pause] = [:]

    /// Whether the last report of every batch was accepted.
    var isEmpty: Bool { pauses.isEmpty }

    /// Whether reports of the batch may be sent now.
    func isDue(_ batch: BatchIdentity, now: ContinuousClock.Instant = .now) -> Bool {
        pauses[batch].map { $0.end <= now } ?? true
    }

    mutating func refuse(_ batch: BatchIdentity, now: ContinuousClock.Instant = .now) {
        let length = pauses[batch].map { min(Self.longest, $0.length * 2) } ?? .seconds(1)
        pauses[batch] = Pause(length: length, end: now + length)
    }

    /// Redis accepted one, or the batch is over.
    mutating func accept(_ batch: BatchIdentity) { pauses[batch] = nil }
}

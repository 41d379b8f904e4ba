/// The batches whose last report Redis refused, and when they may be reported again.
struct RefusedReports: Sendable {
    private var pauses: [BatchIdentity: BackOff] = [:]

    /// Whether the last report of every batch was accepted.
    var isEmpty: Bool { pauses.isEmpty }

    /// Whether reports of the batch may be sent now.
    func isDue(_ batch: BatchIdentity, now: ContinuousClock.Instant = .now) -> Bool {
        pauses[batch]?.isDue(now: now) ?? true
    }

    mutating func refuse(_ batch: BatchIdentity, now: ContinuousClock.Instant = .now) {
        pauses[batch, default: BackOff(first: .seconds(1))].fail(now: now)
    }

    /// Redis accepted one, or the batch is over.
    mutating func accept(_ batch: BatchIdentity) { pauses[batch] = nil }
}

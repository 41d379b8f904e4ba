internal import Threading

/// Detects whether a thread responds, without waiting for it.
final class LoopMonitor: Sendable {
    private let asked = Locked<ContinuousClock.Instant?>(nil)

    /// How long the last ping has been unanswered; sends one if none is pending.
    /// * `perform`: runs a closure on the thread without waiting.
    func check(_ perform: (@escaping @Sendable () -> Void) -> Void) -> Duration {
        let now = ContinuousClock.now
        let since = asked.withLock { asked in
            defer { if asked == nil { asked = now } }
            return asked
        }
        guard let since else {
            perform { self.asked.withLock { $0 = nil } }
            return .zero
        }
        return now - since
    }
}

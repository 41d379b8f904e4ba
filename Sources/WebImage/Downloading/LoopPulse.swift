internal import Threading

/// Whether a thread comes round to its work, for those who must not wait for it.
final class LoopPulse: Sendable {
    private let asked = Locked<ContinuousClock.Instant?>(nil)

    /// For how long the last question has had no answer; puts one where there is none.
    ///
    /// * `perform`: runs a closure on the thread, without a wait.
    func look(_ perform: (@escaping @Sendable () -> Void) -> Void) -> Duration {
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

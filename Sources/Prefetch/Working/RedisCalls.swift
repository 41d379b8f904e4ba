internal import Threading

/// How long the calls of a worker's loops to Redis take, repetitions included. The heartbeat and the wait for work are not among them.
final class RedisCalls: Sendable {
    private struct State {
        var begins: [Int: ContinuousClock.Instant] = [:]
        var next = 0
        /// Time with at least one pending call, up to the present stretch of it.
        var busy = Duration.zero
        var busySince: ContinuousClock.Instant?
        /// Of the calls that have ended since the last reading.
        var longest = Duration.zero
    }

    private let state = Locked(State())

    /// Pass the value to ``end(_:at:)`` when the call returns, also on failure.
    func begin(at now: ContinuousClock.Instant = .now) -> Int {
        state.withLock { state in
            if state.begins.isEmpty { state.busySince = now }
            state.next += 1
            state.begins[state.next] = now
            return state.next
        }
    }

    func end(_ call: Int, at now: ContinuousClock.Instant = .now) {
        state.withLock { state in
            guard let begin = state.begins.removeValue(forKey: call) else { return }
            state.longest = max(state.longest, now - begin)
            guard state.begins.isEmpty, let since = state.busySince else { return }
            state.busy += now - since
            state.busySince = nil
        }
    }

    /// The longest call since the last reading, pending ones included, and the time in which at least one was pending.
    func take(at now: ContinuousClock.Instant = .now) -> (longest: Duration, busy: Duration) {
        state.withLock { state in
            let busy = state.busy + (state.busySince.map { now - $0 } ?? .zero)
            let longest = state.begins.values.reduce(state.longest) { max($0, now - $1) }
            (state.busy, state.longest) = (.zero, .zero)
            if state.busySince != nil { state.busySince = now }
            return (longest, busy)
        }
    }
}

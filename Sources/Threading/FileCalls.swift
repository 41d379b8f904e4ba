internal import Glibc

/// Tracks file calls: how old the oldest in flight is, which reveals a disk that does not respond, and how long all took. Cost per call: two locks and two
/// clock reads, no system call.
package final class FileCalls: Sendable {
    package struct Call: Sendable {
        fileprivate let slot: Int
    }

    private struct State {
        /// Start times in nanoseconds of CLOCK_MONOTONIC; 0 marks a free slot.
        var begins: [Int64] = []
        var free: [Int] = []
        /// Nanoseconds of all calls that have ended.
        var spent: Int64 = 0
    }

    private let state = Locked(State())

    package init() {}

    /// Registers a call. Pass the value to ``end(_:)`` when the call returns, also on failure.
    package func begin() -> Call {
        let now = Self.now
        return state.withLock { state in
            if let slot = state.free.popLast() {
                state.begins[slot] = now
                return Call(slot: slot)
            }
            state.begins.append(now)
            return Call(slot: state.begins.count - 1)
        }
    }

    package func end(_ call: Call) {
        let now = Self.now
        state.withLock { state in
            state.spent += max(0, now - state.begins[call.slot])
            state.begins[call.slot] = 0
            state.free.append(call.slot)
        }
    }

    package var oldest: Duration {
        let begin = state.withLock { $0.begins.lazy.filter { $0 > 0 }.min() }
        return begin.map { .nanoseconds(max(0, Self.now - $0)) } ?? .zero
    }

    /// Time that all calls have taken together, including the part of those in flight. Single calls are shorter than the clock's step,
    /// which evens out over many.
    package var spent: Duration {
        let now = Self.now
        return .nanoseconds(
            state.withLock { state in
                state.begins.reduce(state.spent) { $1 > 0 ? $0 + max(0, now - $1) : $0 }
            })
    }

    /// Coarse clock: it is read for each call, and a few milliseconds do not matter.
    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return max(1, Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}

internal import Glibc

/// The file calls of a process that have not returned. A disk that hangs keeps them for as long as it does, and nobody can ask such a call
/// anything: who wants to know of it reads here how old the oldest one is.
///
/// Costs a call two locks and a look at the clock, and no system call.
package final class FileCalls: Sendable {
    /// A call under way.
    package struct Call: Sendable {
        fileprivate let slot: Int
    }

    private struct State {
        /// When each began, in nanoseconds of CLOCK_MONOTONIC; 0 where a slot is free.
        var begins: [Int64] = []
        var free: [Int] = []
    }

    private let state = Locked(State())

    package init() {}

    /// A call begins. Hand the value to ``end(_:)`` when it has returned, whatever came of it.
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

    /// A call has returned.
    package func end(_ call: Call) {
        state.withLock { state in
            state.begins[call.slot] = 0
            state.free.append(call.slot)
        }
    }

    /// How long the oldest call has been under way; zero where there is none.
    package var oldest: Duration {
        let begin = state.withLock { $0.begins.lazy.filter { $0 > 0 }.min() }
        return begin.map { .nanoseconds(max(0, Self.now - $0)) } ?? .zero
    }

    /// Coarse: the clock is read for each call, and a few milliseconds do not matter.
    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return max(1, Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}

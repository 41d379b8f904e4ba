internal import Threading

/// A mutex per name for the tasks of this process, first come first served.
final class TransferGate<Name: Hashable & Sendable>: Sendable {
    private struct State {
        /// Waiting tasks by name; a name present is taken.
        var waiters: [Name: [Waiter<Bool>]] = [:]
    }

    private let state = Locked(State())

    /// Enters if free; the usual case, without waiting.
    func tryEnter(_ name: Name) -> Bool {
        state.withLock { state in
            guard state.waiters[name] == nil else { return false }
            state.waiters[name] = []
            return true
        }
    }

    /// Waits for its turn.
    /// - Returns: false if the task was cancelled first; then do not call ``leave(_:)``.
    func enter(_ name: Name) async -> Bool {
        if Task.isCancelled { return false }
        let waiter = Waiter<Bool>()
        let passes = state.withLock { state in
            guard state.waiters[name] != nil else {
                state.waiters[name] = []
                return true
            }
            state.waiters[name]?.append(waiter)
            return false
        }
        if passes { return true }
        if await waiter.wait(ifCancelled: false) { return true }
        state.withLock { $0.waiters[name]?.removeAll { $0 === waiter } }
        return false
    }

    func leave(_ name: Name) {
        state.withLock { state in
            while state.waiters[name]?.isEmpty == false {
                // A cancelled waiter does not enter.
                if state.waiters[name]?.removeFirst().answer(true) == true { return }
            }
            state.waiters[name] = nil
        }
    }

    var names: Set<Name> { state.withLock { Set($0.waiters.keys) } }

    func isTaken(_ name: Name) -> Bool { state.withLock { $0.waiters[name] != nil } }

    /// Number of waiters; nil if the name is free.
    func waiting(_ name: Name) -> Int? { state.withLock { $0.waiters[name]?.count } }
}

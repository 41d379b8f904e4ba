internal import Threading

/// Lets one task of this process at a time pass per name, in the order of arrival.
final class TransferGate<Name: Hashable & Sendable>: Sendable {
    private struct State {
        /// Who waits, by name; a name that is here is taken.
        var waiters: [Name: [Waiter<Bool>]] = [:]
    }

    private let state = Locked(State())

    /// Passes where nobody else has; the usual case, without a wait.
    func tryEnter(_ name: Name) -> Bool {
        state.withLock { state in
            guard state.waiters[name] == nil else { return false }
            state.waiters[name] = []
            return true
        }
    }

    /// Waits for its turn.
    /// - Returns: false where the task was cancelled first; then there is nothing to leave.
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

    /// Lets the next one pass.
    func leave(_ name: Name) {
        state.withLock { state in
            while state.waiters[name]?.isEmpty == false {
                // One that was cancelled does not pass.
                if state.waiters[name]?.removeFirst().answer(true) == true { return }
            }
            state.waiters[name] = nil
        }
    }

    /// The names that are taken.
    var names: Set<Name> { state.withLock { Set($0.waiters.keys) } }

    /// Whether a name is taken.
    func isTaken(_ name: Name) -> Bool { state.withLock { $0.waiters[name] != nil } }

    /// How many wait behind the one that has passed; nil where nobody has.
    func waiting(_ name: Name) -> Int? { state.withLock { $0.waiters[name]?.count } }
}

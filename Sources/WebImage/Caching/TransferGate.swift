internal import Threading

/// Lets one task of this process at a time pass per name, in the order of arrival.
final class TransferGate<Name: Hashable & Sendable>: Sendable {
    private struct Waiter {
        var id: UInt64
        var continuation: UnsafeContinuation<Bool, Never>
    }

    private struct State {
        /// Who waits, by name; a name that is here is taken.
        var waiters: [Name: [Waiter]] = [:]
        var nextID: UInt64 = 0
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
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer: Bool? = state.withLock { state in
                    // The handler below takes the same lock: it runs either before this, and the task is cancelled, or finds us.
                    if Task.isCancelled { return false }
                    guard state.waiters[name] != nil else {
                        state.waiters[name] = []
                        return true
                    }
                    state.waiters[name]?.append(Waiter(id: id, continuation: continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiter: Waiter? = state.withLock { state in
                guard let index = state.waiters[name]?.firstIndex(where: { $0.id == id }) else { return nil }
                return state.waiters[name]?.remove(at: index)
            }
            waiter?.continuation.resume(returning: false)
        }
    }

    /// Lets the next one pass.
    func leave(_ name: Name) {
        let next: Waiter? = state.withLock { state in
            guard state.waiters[name]?.isEmpty == false else {
                state.waiters[name] = nil
                return nil
            }
            return state.waiters[name]?.removeFirst()
        }
        next?.continuation.resume(returning: true)
    }

    /// The names that are taken.
    var names: Set<Name> { state.withLock { Set($0.waiters.keys) } }

    /// Whether a name is taken.
    func isTaken(_ name: Name) -> Bool { state.withLock { $0.waiters[name] != nil } }

    /// How many wait behind the one that has passed; nil where nobody has.
    func waiting(_ name: Name) -> Int? { state.withLock { $0.waiters[name]?.count } }
}

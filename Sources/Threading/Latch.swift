/// A gate that opens once and lets every waiter through: what ends structured tasks from outside.
package final class Latch: Sendable {
    private struct State {
        var isOpen = false
        var next = 0
        var waiters: [Int: UnsafeContinuation<Void, Never>] = [:]
    }

    private let state = Locked(State())

    package init() {}

    /// Whether it was opened.
    package var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Lets everybody through, now and later.
    package func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when the latch is open, or at once when the task is cancelled.
    package func wait() async {
        let id = state.withLock { state in
            state.next += 1
            return state.next
        }
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let passes = state.withLock { state in
                    // Cancelled before it was registered: the handler below has run already and found nobody.
                    if state.isOpen || Task.isCancelled { return true }
                    state.waiters[id] = continuation
                    return false
                }
                if passes { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
        }
    }
}

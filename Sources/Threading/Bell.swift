/// Wakes one waiting loop: a ring between two waits is remembered, several count as one.
package final class Bell: Sendable {
    private struct State {
        var isRung = false
        var waiter: UnsafeContinuation<Void, Never>?
    }

    private let state = Locked(State())

    package init() {}

    /// Wakes the waiter, or lets the next wait return at once.
    package func ring() {
        let waiter = state.withLock { state in
            let waiter = state.waiter
            state.waiter = nil
            if waiter == nil { state.isRung = true }
            return waiter
        }
        waiter?.resume()
    }

    /// Returns after the next ring, or at once when the task is cancelled. One waiter at a time.
    package func wait() async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let passes = state.withLock { state in
                    if state.isRung || Task.isCancelled {
                        state.isRung = false
                        return true
                    }
                    state.waiter = continuation
                    return false
                }
                if passes { continuation.resume() }
            }
        } onCancel: {
            ring()
        }
    }

    /// As ``wait()``, and no longer than `duration`.
    package func wait(atMost duration: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.wait() }
            group.addTask { try? await Task.sleep(for: duration) }
            await group.next()
            group.cancelAll()
        }
    }
}

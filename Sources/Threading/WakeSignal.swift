/// Wakes one waiting loop. A ring between two waits is remembered; several count as one.
package final class WakeSignal: Sendable {
    private struct State {
        var isSignalled = false
        var waiter: Waiter<Void>?
    }

    private let state = Locked(State())

    package init() {}

    package func ring() {
        let waiter = state.withLock { state in
            defer { state.waiter = nil }
            if state.waiter == nil { state.isSignalled = true }
            return state.waiter
        }
        // A cancelled waiter has not consumed the ring.
        if let waiter, !waiter.answer(()) { state.withLock { $0.isSignalled = true } }
    }

    /// Returns after the next ring, or immediately if the task is cancelled. One waiter at a time.
    package func wait() async {
        let waiter = Waiter<Void>()
        let isSignalled = state.withLock { state in
            defer { state.isSignalled = false }
            if !state.isSignalled { state.waiter = waiter }
            return state.isSignalled
        }
        guard !isSignalled else { return }
        await waiter.wait(ifCancelled: ())
        state.withLock { state in if state.waiter === waiter { state.waiter = nil } }
    }

    package func wait(atMost duration: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.wait() }
            group.addTask { try? await Task.sleep(for: duration) }
            await group.next()
            group.cancelAll()
        }
    }
}

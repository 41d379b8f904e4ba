/// A gate that opens once and lets every waiter through: what ends structured tasks from outside.
package final class Latch: Sendable {
    private struct State {
        var isOpen = false
        var waiters: [ObjectIdentifier: Waiter<Void>] = [:]
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
        for waiter in waiters { waiter.answer(()) }
    }

    /// Returns when the latch is open, or at once when the task is cancelled.
    package func wait() async {
        if isOpen { return }
        let waiter = Waiter<Void>()
        let id = ObjectIdentifier(waiter)
        let isOpen = state.withLock { state in
            if !state.isOpen { state.waiters[id] = waiter }
            return state.isOpen
        }
        guard !isOpen else { return }
        await waiter.wait(ifCancelled: ())
        state.withLock { $0.waiters[id] = nil }
    }
}

/// A one-shot gate for tasks: ends structured tasks from outside.
package final class Latch: Sendable {
    private struct State {
        var isOpen = false
        var waiters: [ObjectIdentifier: Waiter<Void>] = [:]
    }

    private let state = Locked(State())

    package init() {}

    package var isOpen: Bool { state.withLock { $0.isOpen } }

    package func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.answer(()) }
    }

    /// Returns when the latch opens, or immediately if the task is cancelled.
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

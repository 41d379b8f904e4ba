internal import Threading

/// Closed while a local fault lasts: nothing new starts until a check finds it repaired.
final class FaultGate: Sendable {
    private struct State {
        var message: String?
        var isForcedOpen = false
        var mended = Latch()
    }

    private let state = Locked(State())
    private let tell: @Sendable (_ message: String?) -> Void

    /// * `tell`: called with the fault when it closes, and with nil when it opens again.
    init(tell: @escaping @Sendable (_ message: String?) -> Void = { _ in }) { self.tell = tell }

    var message: String? { state.withLock { $0.message } }

    /// Returns true for a new fault.
    @discardableResult
    func close(_ message: String) -> Bool {
        let isNew = state.withLock { state in
            defer { state.message = message }
            guard state.message == nil else { return false }
            state.mended = Latch()
            return true
        }
        if isNew { tell(message) }
        return isNew
    }

    func reopen() {
        let mended = state.withLock { state -> Latch? in
            guard state.message != nil else { return nil }
            state.message = nil
            return state.mended
        }
        guard let mended else { return }
        mended.open()
        tell(nil)
    }

    /// Opens for good: the worker leaves.
    func open() {
        let mended = state.withLock { state in
            state.isForcedOpen = true
            return state.mended
        }
        mended.open()
    }

    /// Returns when there is no fault, or the worker leaves, or the task is cancelled.
    nonisolated(nonsending) func wait() async {
        while !Task.isCancelled {
            let mended = state.withLock { state in
                state.message == nil || state.isForcedOpen ? nil : state.mended
            }
            guard let mended else { return }
            await mended.wait()
        }
    }
}

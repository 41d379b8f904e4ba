internal import Threading

/// Closed while something local is broken: nothing new begins until a look says that it is mended.
final class FaultGate: Sendable {
    private struct State {
        var message: String?
        var isForcedOpen = false
        var mended = Latch()
    }

    private let state = Locked(State())

    /// What is broken; nil when all is well.
    var message: String? { state.withLock { $0.message } }

    /// Says what is broken; true where it was not known yet.
    func close(_ message: String) -> Bool {
        state.withLock { state in
            defer { state.message = message }
            guard state.message == nil else { return false }
            state.mended = Latch()
            return true
        }
    }

    /// Says that it works again; true where it was known to be broken.
    func reopen() -> Bool {
        let mended = state.withLock { state -> Latch? in
            guard state.message != nil else { return nil }
            state.message = nil
            return state.mended
        }
        mended?.open()
        return mended != nil
    }

    /// Lets everybody through for good: the worker leaves.
    func open() {
        let mended = state.withLock { state in
            state.isForcedOpen = true
            return state.mended
        }
        mended.open()
    }

    /// Returns when nothing is broken, or the worker leaves, or the task is cancelled.
    func wait() async {
        while !Task.isCancelled {
            let mended = state.withLock { state in
                state.message == nil || state.isForcedOpen ? nil : state.mended
            }
            guard let mended else { return }
            await mended.wait()
        }
    }
}

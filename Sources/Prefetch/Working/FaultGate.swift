internal import Threading
internal import WebImage

/// Closed while a local fault lasts: nothing new starts until a check finds it repaired.
final class FaultGate: Sendable {
    /// Whose check opens it again.
    enum Cause: Sendable {
        /// The disk takes no image.
        case files
        /// The disk does not write out what it took.
        case sync
        /// The cache has no room for more.
        case room
        /// The disk does not respond.
        case hold
        /// Others reach hosts that this machine does not.
        case network
    }

    private struct State {
        /// The first came first.
        var faults: [(cause: Cause, message: String)] = []
        var isForcedOpen = false
        var mended = Latch()
    }

    private let state = Locked(State())
    private let tell: @Sendable (_ message: String?) -> Void

    /// * `tell`: called with the fault when it closes, and with nil when it opens again.
    init(tell: @escaping @Sendable (_ message: String?) -> Void = { _ in }) { self.tell = tell }

    /// What it was closed for first; nil while it is open.
    var message: String? { state.withLock { $0.faults.first?.message } }

    func isClosed(by cause: Cause) -> Bool { state.withLock { $0.faults.contains { $0.cause == cause } } }

    func close(_ message: String, by cause: Cause) {
        let isNew = state.withLock { state in
            if let index = state.faults.firstIndex(where: { $0.cause == cause }) {
                state.faults[index].message = message
                return false
            }
            state.faults.append((cause, message))
            guard state.faults.count == 1 else { return false }
            state.mended = Latch()
            return true
        }
        if isNew { tell(message) }
    }

    /// Opens it if nothing else keeps it closed.
    func reopen(_ cause: Cause) {
        let mended = state.withLock { state -> Latch? in
            guard !state.faults.isEmpty else { return nil }
            state.faults.removeAll { $0.cause == cause }
            return state.faults.isEmpty ? state.mended : nil
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

    /// Lets those leave whose permit was revoked.
    func dismissRevoked() {
        let woken = state.withLock { state -> Latch? in
            guard !state.faults.isEmpty, !state.isForcedOpen else { return nil }
            defer { state.mended = Latch() }
            return state.mended
        }
        woken?.open()
    }

    /// Returns when there is no fault, or the permit is revoked, or the worker leaves, or the task is cancelled.
    nonisolated(nonsending) func wait(for permit: DownloadPermit? = nil) async {
        while !Task.isCancelled {
            let mended = state.withLock { state in
                state.faults.isEmpty || state.isForcedOpen ? nil : state.mended
            }
            // If it was revoked before this check, the wake-up may be over.
            guard let mended, permit?.isRevoked != true else { return }
            await mended.wait()
        }
    }
}

internal import Synchronization

/// The right to transfer one image; ends with ``release()`` or the last reference.
package final class Transfer: Sendable {
    private let lock: TransferLock
    private let byte: TransferLockFiles.Byte
    private let isOver = Atomic(false)
    private let waited = Atomic(false)

    init(_ lock: TransferLock, _ byte: TransferLockFiles.Byte) {
        self.lock = lock
        self.byte = byte
    }

    deinit { release() }

    /// Whether it had to wait for another process.
    var waitedForOthers: Bool { waited.load(ordering: .relaxed) }

    /// Whether other tasks of this process wait for it to end.
    var isAwaitedHere: Bool { lock.waiting(for: byte) > 0 }

    func didWaitForOthers() { waited.store(true, ordering: .relaxed) }

    package func release() {
        if !isOver.exchange(true, ordering: .acquiringAndReleasing) { lock.giveBack(byte) }
    }
}

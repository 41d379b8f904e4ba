internal import Synchronization

/// The right to transfer one image; ends with ``release()`` or the last reference.
package final class Transfer: Sendable {
    private let lock: TransferLock
    private let byte: TransferLockFiles.Byte
    private let isOver = Atomic(false)

    init(_ lock: TransferLock, _ byte: TransferLockFiles.Byte) {
        self.lock = lock
        self.byte = byte
    }

    deinit { release() }

    package func release() {
        if !isOver.exchange(true, ordering: .acquiringAndReleasing) { lock.giveBack(byte) }
    }
}

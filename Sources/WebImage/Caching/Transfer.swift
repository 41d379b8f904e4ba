internal import Synchronization

/// The right to transfer one image; given back with ``release()``, at the latest when the last reference goes.
package final class Transfer: Sendable {
    private let lock: TransferLock
    private let byte: TransferLockFiles.Byte
    private let isOver = Atomic(false)

    init(_ lock: TransferLock, _ byte: TransferLockFiles.Byte) {
        self.lock = lock
        self.byte = byte
    }

    deinit { release() }

    /// Lets the next one transfer the image. Any further call does nothing.
    package func release() {
        if !isOver.exchange(true, ordering: .acquiringAndReleasing) { lock.giveBack(byte) }
    }
}

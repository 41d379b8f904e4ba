internal import CLinux
internal import Glibc
internal import Threading

/// One transfer per image, over all processes that share a cache.
///
/// Among the tasks of this process a gate decides, in the order of arrival; between processes an open-file-description lock
/// (fcntl(2)) on one byte of one of 16 lock files. The kernel takes it away when a process dies, so there is no lock to expire or
/// to break. Use one `TransferLock` per process and cache.
///
/// A process that hangs or was stopped keeps its locks. So nobody waits for another process longer than the patience: then there may be
/// two transfers of the image, and whoever comes second finds it stored, which costs a transfer and harms nothing.
package final class TransferLock: Sendable {
    private let gate = TransferGate<TransferLockFiles.Byte>()
    /// Since when a byte that another process has is asked for.
    private let contended = Locked<[TransferLockFiles.Byte: Double]>([:])
    private let files: TransferLockFiles
    private let directory: String
    private let patience: Duration

    /// Opens the lock files of a cache.
    /// * `patience`: the longest wait for another process.
    package init(_ cache: DiskCache, patience: Duration = .seconds(15)) throws(WebImageError) {
        self.patience = patience
        directory = cache.directory
        files = try TransferLockFiles(cache)
    }

    /// The right to transfer an image that nobody transfers now, which is the usual case; nil where somebody does.
    /// - Throws: `localFault` where the lock files do not work.
    package func tryAcquire(_ key: CacheKey) throws(WebImageError) -> Transfer? {
        let byte = TransferLockFiles.Byte(key)
        guard gate.tryEnter(byte) else { return nil }
        if files.tryLock(byte) { return Transfer(self, byte) }
        let code = errno
        gate.leave(byte)
        guard code == EAGAIN || code == EACCES else {
            throw DiskCache.fault("lock a transfer in the cache \(directory)", code: code)
        }
        return nil
    }

    /// Waits until nobody else transfers this image, or another process has for longer than the patience.
    /// - Throws: `cancelled` where the task is cancelled while it waits, `localFault` where the lock files do not work.
    package func acquire(_ key: CacheKey) async throws(WebImageError) -> Transfer {
        let byte = TransferLockFiles.Byte(key)
        if !gate.tryEnter(byte) {
            guard await gate.enter(byte) else { throw Self.cancelled }
        }
        // Leaves the gate also where the lock below fails.
        let transfer = Transfer(self, byte)
        try await lock(byte)
        return transfer
    }

    /// Ends a transfer; by ``Transfer/release()`` alone.
    func giveBack(_ byte: TransferLockFiles.Byte) {
        files.unlock(byte)
        gate.leave(byte)
    }

    /// How many tasks of this process wait for an image behind the one that transfers it.
    package func waiting(for key: CacheKey) -> Int {
        gate.waiting(TransferLockFiles.Byte(key)) ?? 0
    }

    /// For how many seconds a task of this process has waited for another one that transfers this image; nil where none does.
    package func secondsWaiting(for key: CacheKey) -> Double? {
        let since = contended.withLock { $0[TransferLockFiles.Byte(key)] }
        return since.map { max(0, monotonicSeconds() - $0) }
    }

    /// Asks again and again, ever less often: a call that waits in the kernel could not be cancelled.
    private func lock(_ byte: TransferLockFiles.Byte) async throws(WebImageError) {
        let end = ContinuousClock.now + patience
        var wait = Duration.milliseconds(2)
        var isWaiting = false
        defer { if isWaiting { contended.withLock { $0[byte] = nil } } }
        while !files.tryLock(byte) {
            guard errno == EAGAIN || errno == EACCES else {
                throw DiskCache.fault("lock a transfer in the cache \(directory)")
            }
            guard .now < end else { return }
            if !isWaiting { contended.withLock { $0[byte] = monotonicSeconds() } }
            isWaiting = true
            do {
                try await Task.sleep(for: wait)
            } catch {
                throw Self.cancelled
            }
            wait = min(wait * 1.5, .milliseconds(100))
        }
    }

    private static var cancelled: WebImageError {
        WebImageError(.cancelled, "cancelled while another transfer of the image was under way")
    }
}

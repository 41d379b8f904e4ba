internal import CLinux
internal import Glibc

/// One transfer per image, over all processes that share a cache.
///
/// Among the tasks of this process a gate decides, in the order of arrival; between processes an open-file-description lock
/// (fcntl(2)) on one byte of one of 16 lock files. The kernel takes it away when a process dies, so there is no lock to expire or
/// to break. Use one `TransferLock` per process and cache.
package final class TransferLock: Sendable {
    private let gate = TransferGate<TransferLockFiles.Byte>()
    private let files: TransferLockFiles
    private let directory: String

    /// Opens the lock files of a cache.
    package init(_ cache: DiskCache) throws(WebImageError) {
        directory = cache.directory
        files = try TransferLockFiles(cache)
    }

    /// Runs `body` while nobody else transfers this image. Whoever waited looks into the cache first: most often it is there now.
    /// - Throws: what ``acquire(_:)`` and `body` throw.
    package nonisolated(nonsending) func withTransfer<Result>(
        of key: CacheKey, _ body: nonisolated(nonsending) () async throws(WebImageError) -> Result
    ) async throws(WebImageError) -> Result {
        let transfer = try await acquire(key)
        defer { transfer.release() }
        return try await body()
    }

    /// Waits until nobody else transfers this image.
    /// - Throws: `cancelled` where the task is cancelled while it waits, `localFault` where the lock files do not work.
    package func acquire(_ key: CacheKey) async throws(WebImageError) -> Transfer {
        let byte = TransferLockFiles.Byte(key)
        if !gate.tryEnter(byte) {
            guard await gate.enter(byte) else { throw Self.cancelled }
        }
        // Leaves the gate also where the lock below fails.
        let transfer = Transfer { [self] in
            files.unlock(byte)
            gate.leave(byte)
        }
        try await lock(byte)
        return transfer
    }

    /// How many tasks of this process wait for an image behind the one that transfers it.
    package func waiting(for key: CacheKey) -> Int {
        gate.waiting(TransferLockFiles.Byte(key)) ?? 0
    }

    /// Asks again and again, ever less often: a call that waits in the kernel could not be cancelled.
    private func lock(_ byte: TransferLockFiles.Byte) async throws(WebImageError) {
        var wait = Duration.milliseconds(2)
        while !files.tryLock(byte) {
            guard errno == EAGAIN || errno == EACCES else {
                throw DiskCache.fault("lock a transfer in the cache \(directory)")
            }
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

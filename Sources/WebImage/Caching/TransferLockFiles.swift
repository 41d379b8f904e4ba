internal import CLinux
internal import Glibc

final class TransferLockFiles: Sendable {
    struct Byte: Hashable {
        let file: Int
        let offset: Int64

        init(_ key: CacheKey) {
            file = key.lockFile
            offset = key.lockOffset
        }
    }

    private let files: [Int32]

    init(_ directory: CacheDirectory) throws(WebImageError) {
        var files: [Int32] = []
        for index in 0..<CacheKey.lockFileCount {
            let path = ".prefetch/locks/\(String(index, radix: 16))"
            let file = clinux_open_beneath(directory.descriptor, path, O_RDWR | O_CREAT | O_CLOEXEC, 0o666)
            guard file >= 0 else {
                let error = directory.fault("open a lock file")
                for file in files { close(file) }
                throw error
            }
            files.append(file)
        }
        self.files = files
    }

    deinit { for file in files { close(file) } }

    /// Locks a byte; false with `errno` if another process holds it.
    func tryLock(_ byte: Byte) -> Bool { clinux_ofd_try_lock(files[byte.file], byte.offset) == 0 }

    /// No error if the byte is not locked.
    func unlock(_ byte: Byte) { _ = clinux_ofd_unlock(files[byte.file], byte.offset) }

    // MARK: Heartbeats

    /// A second byte per image, which only its holder locks and unlocks alternately. The first bytes' offsets end at 2^61.
    private static func second(_ byte: Byte) -> Int64 { byte.offset | 1 << 62 }

    /// Locks or unlocks the second byte of an image whose first byte this process holds.
    func setSecond(_ byte: Byte, isLocked: Bool) {
        let (file, offset) = (files[byte.file], Self.second(byte))
        _ = isLocked ? clinux_ofd_try_lock(file, offset) : clinux_ofd_unlock(file, offset)
    }

    func isSecondLocked(_ byte: Byte) -> Bool { clinux_ofd_is_locked(files[byte.file], Self.second(byte)) == 1 }

    // MARK: Waiting

    /// A third byte, which one of the processes that wait has locked.
    private static func third(_ byte: Byte) -> Int64 { byte.offset | 1 << 61 }

    func setWaiting(_ byte: Byte, _ isWaiting: Bool) {
        let (file, offset) = (files[byte.file], Self.third(byte))
        _ = isWaiting ? clinux_ofd_try_lock(file, offset) : clinux_ofd_unlock(file, offset)
    }

    /// Whether another process waits.
    func isAwaited(_ byte: Byte) -> Bool { clinux_ofd_is_locked(files[byte.file], Self.third(byte)) == 1 }
}

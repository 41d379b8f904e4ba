internal import CLinux
internal import Glibc

/// A lock on a file by flock(2): the kernel releases it when the last process that holds the descriptor has ended, including children that
/// inherited it. The file itself stays, or two processes could lock two files of one name.
final class LockFile: Sendable {
    let descriptor: Int32

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Tries to take a lock.
    /// - Returns: nil while another process has it.
    /// - Throws: `cacheUnavailable` if the file cannot be created, or is not private to this user.
    static func take(_ name: String, in folder: PinnedFolder, shared: Bool = false) throws(PrefetchError) -> LockFile? {
        let file = LockFile(descriptor: try folder.open(name, O_RDWR | O_CREAT))
        return try file.lock(shared: shared, path: "\(folder.path)/\(name)") ? file : nil
    }

    /// Takes a lock that others hold for a few calls on files only; blocks meanwhile.
    static func wait(_ name: String, in folder: PinnedFolder) throws(PrefetchError) -> LockFile {
        let file = LockFile(descriptor: try folder.open(name, O_RDWR | O_CREAT))
        while flock(file.descriptor, LOCK_EX) < 0 {
            guard errno == EINTR else { throw .file("lock", "\(folder.path)/\(name)") }
        }
        return file
    }

    /// Releases the lock at once, for every process that holds the descriptor: also for a child that another thread has just forked and
    /// that has not closed it by its exec yet.
    func release() { flock(descriptor, LOCK_UN) }

    /// Makes an exclusive lock shared. flock(2) releases it before it takes the new one, so keep others from trying meanwhile.
    func share() { while flock(descriptor, LOCK_SH) < 0 && errno == EINTR {} }

    private func lock(shared: Bool, path: String) throws(PrefetchError) -> Bool {
        while flock(descriptor, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) < 0 {
            switch errno {
            case EINTR: continue
            case EWOULDBLOCK: return false
            default: throw .file("lock", path)
            }
        }
        return true
    }
}

extension PrefetchError {
    /// A failed call on a file of the state, with the reason in errno.
    static func file(_ verb: String, _ path: String) -> PrefetchError {
        let code = errno
        let isDisk = [ENOSPC, EDQUOT, EIO].contains(code)
        let reason = code == ELOOP ? "a symbolic link is not followed there" : String(cString: strerror(code))
        return PrefetchError(
            isDisk ? .inputOutput : .cacheUnavailable, "cannot \(verb) \(path): \(reason)",
            hint: isDisk
                ? "free space on that disk, or repair it, then run it again"
                : "name another folder for the state of runs: --state DIR")
    }
}

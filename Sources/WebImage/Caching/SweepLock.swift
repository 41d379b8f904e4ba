internal import Glibc

/// Exclusive right to sweep a cache, by flock(2) on `.prefetch/sweep`, which the kernel releases when its holder dies.
struct SweepLock: ~Copyable {
    private let file: OpenFile

    /// Nil while another process holds it.
    init?(_ directory: CacheDirectory) throws(WebImageError) {
        guard let file = directory.open(".prefetch/sweep", O_RDWR | O_CREAT | O_CLOEXEC, 0o666) else {
            throw directory.fault("open the lock of sweeps")
        }
        while flock(file.descriptor, LOCK_EX | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { return nil }
            guard errno == EINTR else { throw directory.fault("lock the sweeps") }
        }
        self.file = file
    }
}

internal import Glibc

/// The right to sweep a cache: one process at a time, by flock(2) on `.prefetch/sweep`, which the kernel gives up when its holder dies.
struct SweepLock: ~Copyable {
    private let file: OpenFile

    /// Nil while another has it.
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

internal import CLinux
internal import Glibc

/// The right to sweep a cache: one process at a time, by flock(2) on `.prefetch/sweep`, which the kernel gives up when its holder dies.
struct SweepLock: ~Copyable {
    private let file: OpenFile

    /// Nil while another has it.
    init?(_ cache: DiskCache) throws(WebImageError) {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC
        guard let file = OpenFile(clinux_open_beneath(cache.root, ".prefetch/sweep", flags, 0o666)) else {
            throw cache.fault("open the lock of sweeps")
        }
        while flock(file.descriptor, LOCK_EX | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { return nil }
            guard errno == EINTR else { throw cache.fault("lock the sweeps") }
        }
        self.file = file
    }
}

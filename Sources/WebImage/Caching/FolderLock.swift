internal import CLinux
internal import Glibc

/// A folder locked by flock(2) for the lifetime of this value; the kernel unlocks it if the process dies. To remove or replace a name, lock
/// the leaf directory while checking which file it is and changing it. Otherwise another process' new image could get the name in between
/// and be removed. Creating a free name needs no lock.
struct FolderLock: ~Copyable {
    private let file: OpenFile

    /// Waits for the lock; nil with `errno`.
    init?(_ parent: Int32, _ path: String = ".") {
        // Its own descriptor: the caller's may not be lockable (O_PATH), or be shared by threads.
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
        guard let file = OpenFile(clinux_open_beneath(parent, path, flags, 0)) else { return nil }
        while flock(file.descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { return nil }
        }
        self.file = file
    }

    var descriptor: Int32 { file.descriptor }
}

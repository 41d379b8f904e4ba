internal import CLinux
internal import Glibc

/// A folder locked by flock(2) until this value goes, by the kernel where the process dies.
///
/// Who takes a name away from a file, or gives it to another one, has the leaf directory locked while it looks which file that is and does
/// so. Otherwise another's new image could get the name in between, and be the one that goes. Who gives a name that is free does not need
/// the lock.
struct FolderLock: ~Copyable {
    private let file: OpenFile

    /// Waits for whoever has it; nil with `errno`.
    init?(_ parent: Int32, _ path: String = ".") {
        // A descriptor of its own: the caller's may be one that cannot be locked (O_PATH), or belong to several threads.
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
        guard let file = OpenFile(clinux_open_beneath(parent, path, flags, 0)) else { return nil }
        while flock(file.descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { return nil }
        }
        self.file = file
    }

    /// The folder's, as long as it is locked.
    var descriptor: Int32 { file.descriptor }
}

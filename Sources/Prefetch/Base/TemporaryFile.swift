internal import CLinux
internal import Glibc
internal import WebImage

/// A file that is being written in a folder and has no name there yet, or a temporary one where the file system knows only files with
/// names. Without a name nothing is left of it, whatever ends the process; a temporary name goes with the last reference.
final class TemporaryFile: Sendable {
    private let folder: OpenFolder
    private let file: NewFile

    /// Makes one; nil with `errno`.
    /// * `isUnnamed`: whether to try without a name.
    init?(in folder: OpenFolder, isUnnamed: Bool = true) {
        self.folder = folder
        // An unnamed file gets its name through /proc (open(2), O_TMPFILE).
        if isUnnamed, access("/proc/self/fd", X_OK) == 0 {
            let file = clinux_open_beneath(folder.descriptor, ".", clinux_tmpfile_flags(), 0o666)
            // What a kernel or file system answers that has none (open(2)).
            if file >= 0 || ![EOPNOTSUPP, EISDIR, EINVAL].contains(errno) {
                guard file >= 0 else { return nil }
                self.file = NewFile(file, temporaryName: nil, in: folder.descriptor)
                return
            }
        }
        let name = Self.name()
        let file = clinux_open_beneath(folder.descriptor, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard file >= 0 else { return nil }
        self.file = NewFile(file, temporaryName: name, in: folder.descriptor)
    }

    deinit {
        close(descriptor)
        // Where it was published by a rename the name is free already, and nobody else's: it is random.
        if let name = file.temporaryName { unlinkat(folder.descriptor, name, 0) }
    }

    var descriptor: Int32 { file.descriptor }

    /// Gives it a name that is free. Returns 0 or an errno, `EEXIST` where the name is taken.
    func publish(as target: String) -> Int32 { file.publish(as: target) }

    /// Gives it a name in place of what has it. Returns 0 or an errno.
    func publish(replacing target: String) -> Int32 { file.publish(replacing: target, by: Self.name()) }

    private static func name() -> String {
        ".prefetch-\(getpid())-\(String(UInt64.random(in: 0 ... .max), radix: 16)).tmp"
    }
}

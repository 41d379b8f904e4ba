internal import CLinux
internal import Glibc
internal import WebImage

/// A file that is being written in a folder and has no name there yet, or a temporary one where the file system knows only files with
/// names. Without a name nothing is left of it, whatever ends the process; a temporary name goes with the last reference.
final class TemporaryFile: Sendable {
    let descriptor: Int32
    private let folder: OpenFolder
    /// Nil where it has no name.
    private let name: String?

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
                (descriptor, name) = (file, nil)
                return
            }
        }
        let name = ".prefetch-\(getpid())-\(String(UInt64.random(in: 0 ... .max), radix: 16)).tmp"
        let file = clinux_open_beneath(folder.descriptor, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard file >= 0 else { return nil }
        (descriptor, self.name) = (file, name)
    }

    deinit {
        close(descriptor)
        // Where it was published by a rename the name is free already, and nobody else's: it is random.
        if let name { unlinkat(folder.descriptor, name, 0) }
    }

    /// Writes all bytes to an open file. Returns 0 or an errno.
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes
            while !rest.isEmpty {
                let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
                if count < 0 {
                    if errno == EINTR { continue }
                    return errno
                }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            return 0
        }
    }

    /// Gives it a name that is free. Returns 0 or an errno, `EEXIST` where the name is taken.
    func publish(as target: String) -> Int32 {
        guard let name else { return clinux_link_fd(descriptor, directory, target) == 0 ? 0 : errno }
        return DiskCache.nameOnce(name, as: target, in: directory) == 0 ? 0 : errno
    }

    /// Gives it a name in place of what has it. Returns 0 or an errno.
    func publish(replacing target: String) -> Int32 {
        if let name { return renameat(directory, name, directory, target) == 0 ? 0 : errno }
        let step = ".prefetch-\(getpid())-\(String(UInt64.random(in: 0 ... .max), radix: 16)).tmp"
        guard clinux_link_fd(descriptor, directory, step) == 0 else { return errno }
        if renameat(directory, step, directory, target) == 0 { return 0 }
        let code = errno
        unlinkat(directory, step, 0)
        return code
    }

    private var directory: Int32 { folder.descriptor }
}

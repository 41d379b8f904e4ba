internal import Glibc
internal import WebImage

/// A file being written that has no name yet, or a temporary one if the file system does not support unnamed files. Without a name nothing
/// is left of it, however the process ends; a temporary name is removed with the last reference.
final class TemporaryFile: Sendable {
    private let folder: OpenFolder
    private let file: NewFile

    /// Nil with `errno`.
    /// * `isUnnamed`: whether to try without a name.
    init?(in folder: OpenFolder, isUnnamed: Bool = true) {
        self.folder = folder
        // An unnamed file gets its name through /proc (open(2), O_TMPFILE).
        let isUnnamed = isUnnamed && access("/proc/self/fd", X_OK) == 0
        let file = NewFile.make(
            in: folder.descriptor, mode: 0o666, isUnnamed: isUnnamed, temporaryName: Self.name())
        guard let file else { return nil }
        self.file = file
    }

    deinit {
        close(descriptor)
        // After a rename the name is free, and no other file has it: it is random.
        if let name = file.temporaryName { unlinkat(folder.descriptor, name, 0) }
    }

    var descriptor: Int32 { file.descriptor }

    /// Returns 0 or an errno, `EEXIST` if the name is taken.
    func publish(as target: String) -> Int32 { file.publish(as: target) }

    /// Replaces an existing file. Returns 0 or an errno.
    func publish(replacing target: String) -> Int32 { file.publish(replacing: target, by: Self.name()) }

    private static func name() -> String {
        ".prefetch-\(getpid())-\(String(UInt64.random(in: 0 ... .max), radix: 16)).tmp"
    }
}

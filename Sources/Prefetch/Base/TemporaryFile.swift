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
        let isUnnamed = isUnnamed && access("/proc/self/fd", X_OK) == 0
        let file = NewFile.make(
            in: folder.descriptor, mode: 0o666, isUnnamed: isUnnamed, temporaryName: Self.name())
        guard let file else { return nil }
        self.file = file
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

internal import Glibc
internal import Threading

/// What the file system of a cache can do, as far as it has been tried: each lack is found out by the first call that fails for it.
final class FileSystemFeatures: Sendable {
    /// What it can do as far as is known.
    struct Known {
        /// Whether a file can be without a name until it is whole.
        var unnamedFiles: Bool
        /// Whether a file takes extended attributes.
        var attributes: Bool
        /// Whether a file takes an attribute that is read-only from the start (CAP_DAC_OVERRIDE): a call less for each image.
        var attributesOfReadOnlyFiles: Bool
    }

    private let state: Locked<Known>

    /// Everything that the configuration allows, until it fails.
    init(_ configuration: DiskCache.Configuration) {
        state = Locked(
            Known(
                // An unnamed file gets its name through /proc (open(2), O_TMPFILE).
                unnamedFiles: configuration.usesUnnamedFiles == .auto && access("/proc/self/fd", X_OK) == 0,
                attributes: configuration.usesExtendedAttributes == .auto, attributesOfReadOnlyFiles: geteuid() == 0))
    }

    /// What is known now.
    var known: Known { state.withLock { $0 } }

    /// Whether the error of an open means that the kernel or the file system has no unnamed files. EISDIR: one that takes the flag for
    /// O_DIRECTORY (open(2)).
    static func isWithoutUnnamedFiles(_ code: Int32) -> Bool { [EOPNOTSUPP, EISDIR, EINVAL].contains(code) }

    /// An open has failed so.
    func noteNoUnnamedFiles() { state.withLock { $0.unnamedFiles = false } }

    /// Whether the error means that the file system has no extended attributes; remembered.
    func lacksAttributes(_ code: Int32) -> Bool {
        guard code == ENOTSUP || code == ENOSYS else { return false }
        state.withLock { $0.attributes = false }
        return true
    }

    /// Whether the error means that an attribute wants write permission of the file itself (xattr(7)); remembered.
    func lacksAttributesOfReadOnlyFiles(_ code: Int32) -> Bool {
        guard code == EACCES || code == EPERM else { return false }
        state.withLock { $0.attributesOfReadOnlyFiles = false }
        return true
    }
}

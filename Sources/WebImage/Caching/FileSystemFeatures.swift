internal import Glibc
internal import Threading

/// Features of a cache's file system. Each is assumed until a call fails because of it.
final class FileSystemFeatures: Sendable {
    struct Known {
        /// Whether files can stay unnamed until they are complete.
        var unnamedFiles: Bool
        var attributes: Bool
        /// Whether attributes can be set on a file created read-only (CAP_DAC_OVERRIDE), which saves a call per image.
        var attributesOfReadOnlyFiles: Bool
    }

    private let state: Locked<Known>

    init(_ configuration: DiskCache.Configuration) {
        state = Locked(
            Known(
                // Unnamed files are linked through /proc (open(2), O_TMPFILE).
                unnamedFiles: configuration.usesUnnamedFiles == .auto && access("/proc/self/fd", X_OK) == 0,
                attributes: configuration.usesExtendedAttributes == .auto, attributesOfReadOnlyFiles: geteuid() == 0))
    }

    var known: Known { state.withLock { $0 } }

    /// Whether the error of an open means that unnamed files are not supported. EISDIR: the flag was taken for O_DIRECTORY (open(2)).
    static func isWithoutUnnamedFiles(_ code: Int32) -> Bool { [EOPNOTSUPP, EISDIR, EINVAL].contains(code) }

    func recordNoUnnamedFiles() { state.withLock { $0.unnamedFiles = false } }

    /// Whether the error means that extended attributes are not supported; remembered.
    func lacksAttributes(_ code: Int32) -> Bool {
        guard code == ENOTSUP || code == ENOSYS else { return false }
        state.withLock { $0.attributes = false }
        return true
    }

    /// Whether the error means that an attribute requires write permission on the file itself (xattr(7)); remembered.
    func lacksAttributesOfReadOnlyFiles(_ code: Int32) -> Bool {
        guard code == EACCES || code == EPERM else { return false }
        state.withLock { $0.attributesOfReadOnlyFiles = false }
        return true
    }
}

internal import CLinux
internal import Glibc
internal import Threading

/// A cache's temporary files: bodies in transfer, and leftovers of crashes.
package final class TemporaryFiles: Sendable {
    private let directory: CacheDirectory
    private let leaves: LeafDirectories

    init(_ directory: CacheDirectory, _ leaves: LeafDirectories) { (self.directory, self.leaves) = (directory, leaves) }

    static func name() -> String { ".t-\(getpid())-\(String(UInt64.random(in: 0 ... .max), radix: 16))" }

    /// Opens the file of a body that exceeds the memory limit; the caller closes it. Unnamed if supported, so that a crash leaves nothing.
    package func open() throws(WebImageError) -> Int32 {
        let call = directory.calls.begin()
        defer { directory.calls.end(call) }
        if directory.features.known.unnamedFiles {
            let file = Descriptors.admit(
                clinux_open_beneath(directory.descriptor, "v1", clinux_tmpfile_flags(), 0o600))
            if file >= 0 { return file }
            guard FileSystemFeatures.isWithoutUnnamedFiles(errno) else {
                throw directory.fault("make a temporary file")
            }
            directory.features.recordNoUnnamedFiles()
        }
        let name = "v1/\(Self.name())"
        let flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC
        guard let file = directory.open(name, flags, 0o600) else { throw directory.fault("make a temporary file") }
        directory.removeName(name)
        let admitted = Descriptors.admit(file.release())
        guard admitted >= 0 else { throw directory.fault("make a temporary file") }
        return admitted
    }

    /// Removes temporary files older than an hour, which crashes leave on file systems without unnamed files.
    /// - Returns: their number.
    @discardableResult
    func removeStale(olderThan seconds: Int = 3600, isDryRun: Bool = false) throws(WebImageError) -> Int {
        var removed = 0
        let limit = WallClock.seconds - seconds
        // The folders with bodies and the cache's own files.
        for path in ["v1", ".prefetch"] + (try leaves.paths()) {
            guard let folder = directory.folder(path) else { continue }
            for name in try leaves.names(in: path, length: nil) where name.hasPrefix(".t-") {
                var status = stat()
                guard fstatat(folder.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
                    status.st_mtim.tv_sec <= limit, isDryRun || unlinkat(folder.descriptor, name, 0) == 0
                else { continue }
                removed += 1
            }
        }
        return removed
    }
}

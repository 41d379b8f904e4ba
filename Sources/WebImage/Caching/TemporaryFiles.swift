internal import CLinux
internal import Glibc
internal import Threading

/// The files of a cache that are no image yet: bodies on their way, and what a crash left of them.
package final class TemporaryFiles: Sendable {
    private let directory: CacheDirectory
    private let leaves: LeafDirectories

    init(_ directory: CacheDirectory, _ leaves: LeafDirectories) { (self.directory, self.leaves) = (directory, leaves) }

    /// A name that no other process uses.
    static func name() -> String { ".t-\(getpid())-\(String(UInt64.random(in: 0 ... .max), radix: 16))" }

    /// Opens the file a body grows in past its memory limit. Without a name where the file system can do that, so that nothing is
    /// left of it after a crash; the caller closes it.
    /// - Throws: `localFault`.
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
            directory.features.noteNoUnnamedFiles()
        }
        let name = "v1/\(Self.name())"
        let flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC
        guard let file = directory.open(name, flags, 0o600) else { throw directory.fault("make a temporary file") }
        directory.removeName(name)
        let admitted = Descriptors.admit(file.release())
        guard admitted >= 0 else { throw directory.fault("make a temporary file") }
        return admitted
    }

    /// Writes a file of one byte out to the disk and lets it go again: whether the disk answers. Blocks for as long as it does not.
    /// - Throws: `localFault`; then it answers too.
    package func probe() throws(WebImageError) {
        guard let file = OpenFile(try open()) else { throw directory.fault("make a temporary file") }
        var byte: UInt8 = 0
        guard Glibc.write(file.descriptor, &byte, 1) == 1, fdatasync(file.descriptor) == 0 else {
            throw directory.fault("write a temporary file")
        }
    }

    /// Removes those older than an hour: a crash leaves some where the file system has no unnamed files.
    /// - Returns: how many.
    @discardableResult
    func removeStale(olderThan seconds: Int = 3600, isDryRun: Bool = false) throws(WebImageError) -> Int {
        var removed = 0
        let limit = WallClock.seconds - seconds
        // Where bodies and the cache's own files are made.
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

internal import Glibc

/// Protects recently fetched images from sweeps by any process: a worker holds it for its batches. A file in `.prefetch/busy`, locked by
/// flock(2): the kernel releases the lock when the process dies, and the next sweep removes unlocked files. No expiry or lock breaking is
/// needed.
package final class CacheProtection: Sendable {
    static let folder = ".prefetch/busy"

    private let directory: CacheDirectory
    private let file: Int32
    private let name: String

    /// Protects nothing yet.
    package init(_ cache: DiskCache) throws(WebImageError) {
        directory = cache.folder
        guard directory.makeFolder(Self.folder) == 0 || errno == EEXIST else {
            throw directory.fault("make \(Self.folder)")
        }
        while true {
            let name = "\(Self.folder)/\(TemporaryFiles.name().dropFirst(3))"
            guard let file = directory.open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o666) else {
                throw directory.fault("say that the cache is in use")
            }
            while flock(file.descriptor, LOCK_EX) != 0 {
                guard errno == EINTR else { throw directory.fault("say that the cache is in use") }
            }
            var status = stat()
            guard fstat(file.descriptor, &status) == 0 else { throw directory.fault("say that the cache is in use") }
            // A sweep came between the two calls and removed the file as unlocked.
            if status.st_nlink == 0 { continue }
            self.name = name
            self.file = file.release()
            return
        }
    }

    /// Nanoseconds since 1970, at least 1.
    static func moment(_ seconds: Double) -> Int64 { max(1, Int64(min(max(seconds, 0), 9e9) * 1e9)) }

    deinit {
        directory.removeName(name)
        close(file)
    }

    /// Protects everything stored, raised or marked since that time, replacing the previous time.
    /// * `since`: seconds since 1970 by this machine's clock; nil protects nothing.
    /// * `marksFound`: whether what was found since then was marked (``ImageFiles/markFound(since:)``); otherwise nobody knows which images
    ///   are in use, and all are protected.
    package func set(since: Double?, marksFound: Bool = true) throws(WebImageError) {
        // 0 means nothing, 1 everything.
        let moment = since.map { marksFound ? Self.moment($0) : 1 } ?? 0
        let count = withUnsafeBytes(of: moment) { pwrite(file, $0.baseAddress, $0.count, 0) }
        guard count == 8 else {
            throw directory.fault("say that the cache is in use", code: count < 0 ? errno : ENOSPC)
        }
    }
}

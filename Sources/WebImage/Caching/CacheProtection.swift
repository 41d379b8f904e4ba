internal import CLinux
internal import Glibc

/// Keeps sweeps, of whatever process, from what was fetched since a moment: a worker's word for the batches it works for.
///
/// A file of its own in `.prefetch/busy`, locked by flock(2): the kernel gives the lock up when the process dies, and the next sweep
/// removes what is not locked. So nothing has to expire and nothing has to be broken.
package final class CacheProtection: Sendable {
    private let cache: DiskCache
    private let file: Int32
    private let name: String

    /// Protects nothing yet.
    /// - Throws: `localFault`.
    package init(_ cache: DiskCache) throws(WebImageError) {
        self.cache = cache
        guard cache.makeFolder(".prefetch/busy") == 0 || errno == EEXIST else {
            throw cache.fault("make .prefetch/busy")
        }
        while true {
            let name = ".prefetch/busy/\(DiskCache.temporaryName().dropFirst(3))"
            let flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC
            guard let file = OpenFile(clinux_open_beneath(cache.root, name, flags, 0o666)) else {
                throw cache.fault("say that the cache is in use")
            }
            while flock(file.descriptor, LOCK_EX) != 0 {
                guard errno == EINTR else { throw cache.fault("say that the cache is in use") }
            }
            var status = stat()
            guard fstat(file.descriptor, &status) == 0 else { throw cache.fault("say that the cache is in use") }
            // A sweep came between the two calls, and took it for one of the dead.
            if status.st_nlink == 0 { continue }
            self.name = name
            self.file = file.release()
            return
        }
    }

    deinit {
        cache.removeName(name)
        close(file)
    }

    /// Protects what was stored, raised or looked up since that moment, in place of the moment before.
    ///
    /// * `since`: seconds since 1970 by this machine's clock; nil protects nothing.
    /// - Throws: `localFault`.
    package func set(since: Double?) throws(WebImageError) {
        // 0 stands for nothing.
        var moment = since.map { max(1, Int64(min(max($0, 0), 9e9) * 1e9)) } ?? 0
        let count = withUnsafeBytes(of: &moment) { pwrite(file, $0.baseAddress, $0.count, 0) }
        guard count == 8 else { throw cache.fault("say that the cache is in use", code: count < 0 ? errno : ENOSPC) }
    }
}

extension DiskCache {
    /// Whether what a running batch fetches is protected.
    /// - Throws: `localFault`.
    package func isInUse() throws(WebImageError) -> Bool { try protectedSince(cleans: false) != nil }

    /// Since when images are protected, in nanoseconds since 1970; nil where nobody protects any. Removes what the dead left.
    ///
    /// * `cleans`: false leaves even that.
    func protectedSince(cleans: Bool) throws(WebImageError) -> Int64? {
        var oldest: Int64?
        for name in try names(in: ".prefetch/busy", length: nil) where !name.hasPrefix(".") {
            let path = ".prefetch/busy/\(name)"
            let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
            guard let file = OpenFile(clinux_open_beneath(root, path, flags, 0)) else { continue }
            if flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 {
                // Under the lock, so that nobody has just begun to use it without finding out.
                if cleans { removeName(path) }
                continue
            }
            guard let bytes = OpenFile.read(file.descriptor, at: 0, limit: 8), bytes.count == 8 else { continue }
            let moment = bytes.withUnsafeBytes { $0.loadUnaligned(as: Int64.self) }
            if moment > 0 { oldest = min(oldest ?? moment, moment) }
        }
        return oldest
    }
}

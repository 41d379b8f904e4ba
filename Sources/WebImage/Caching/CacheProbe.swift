internal import Glibc

/// Asks a cache's disk whether it stores an image and returns it: with a small file of its own, by the calls of every image, and without one
/// that is left.
package struct CacheProbe: Sendable {
    private static let length = 4096

    private let cache: DiskCache

    package init(_ cache: DiskCache) { self.cache = cache }

    /// Stores, syncs, finds, reads and removes a file. Blocks while the disk does not respond.
    /// * `room`: bytes that must be free beside it; they are reserved for a moment and not written.
    /// - Throws: `localFault`.
    package func run(room: Int = 0) throws(WebImageError) {
        if room > 0 { try reserve(room) }
        var words = SystemRandomNumberGenerator()
        let bytes = (0..<Self.length).map { _ in words.next() as UInt8 }
        let key = CacheKey("probe \(words.next() as UInt64)")
        let record = CacheRecord(
            level: .none, format: .unknown, length: bytes.count, digest: nil, storedAt: WallClock.seconds)
        do throws(WebImageError) {
            try cache.images.store(ImageBody(bytes), for: key, record: record)
            try read(bytes, key)
        } catch {
            _ = try? cache.images.remove(key)
            throw error
        }
        try cache.images.remove(key)
    }

    private func read(_ bytes: [UInt8], _ key: CacheKey) throws(WebImageError) {
        // Another process that clears the cache may have removed it.
        guard let entry = try cache.images.find(key, atLeast: .none) else { return }
        guard fdatasync(entry.descriptor) == 0 else { throw cache.folder.fault("write out a file") }
        guard try entry.bytes() == bytes else { throw cache.folder.fault("read back a file", code: EIO) }
    }

    private func reserve(_ room: Int) throws(WebImageError) {
        guard let file = OpenFile(try cache.temporaryFiles.open()) else {
            throw cache.folder.fault("make a temporary file")
        }
        let code = posix_fallocate(file.descriptor, 0, off_t(room))
        guard code == 0 || [EINTR, EINVAL, EOPNOTSUPP, ENOSYS].contains(code) else {
            throw cache.folder.fault("reserve \(room) bytes", code: code)
        }
    }
}

internal import Glibc

/// An image found in the cache: an open file, so that it stays readable whatever happens to its name.
public final class CacheEntry: Sendable {
    /// How far the entry can be trusted.
    public enum Standing: Sendable, Equatable {
        /// Whole by its record, which says that it passed the level that was asked for.
        case verified
        /// Whole by its record, but it passed a lower level only.
        case lower(ValidationLevel)
        /// Nothing is known of it: copied here by other means, or its record is damaged.
        case unverified
    }

    /// Which image it is.
    public let key: CacheKey
    /// Absolute path of the file, or relative where the cache directory was named so.
    public let path: String
    /// Length in bytes.
    public let size: Int
    /// What is known of it.
    public let record: CacheRecord?
    /// How far it can be trusted.
    public let standing: Standing

    let descriptor: Int32
    let inode: UInt
    /// Seconds since 1970, as the file system keeps it.
    let accessedAt: Int
    /// When the bytes were written, in seconds since 1970.
    package let modifiedAt: Int
    /// When bytes, name or record changed last, in nanoseconds since 1970 by the file system's clock.
    let changedAt: Int64
    let isFile: Bool
    /// Whether it is in a read-only directory behind the cache's own: nothing about it may be changed.
    let isElsewhere: Bool
    /// Whether its record is that of another key: somebody gave the file this name.
    let isForeign: Bool
    /// Whether it is a file of this key, and as long as its record says; without a record, whether it is as long as an image may be.
    let isWhole: Bool

    init(
        key: CacheKey, path: String, record: CacheRecord?, isForeign: Bool = false, isElsewhere: Bool = false,
        level: ValidationLevel, mostUnproved: Int, file: consuming OpenFile, status: stat
    ) {
        self.key = key
        self.path = path
        self.record = record
        self.isForeign = isForeign
        self.isElsewhere = isElsewhere
        size = Int(status.st_size)
        inode = UInt(status.st_ino)
        accessedAt = Plausible.time(status.st_atim.tv_sec)
        modifiedAt = Plausible.time(status.st_mtim.tv_sec)
        changedAt = WriteOut.nanoseconds(status.st_ctim)
        isFile = status.st_mode & S_IFMT == S_IFREG
        isWhole =
            isFile && !isForeign
            && (record.map { $0.length == Int(status.st_size) }
                ?? (1...max(1, mostUnproved)).contains(Int(status.st_size)))
        standing =
            if let record { record.level >= level ? .verified : .lower(record.level) } else { .unverified }
        descriptor = file.release()
    }

    deinit { close(descriptor) }

    /// Whether the caller has to verify the bytes before it counts the entry as a hit; then it is raised or moved aside.
    public var needsVerification: Bool { standing != .verified }

    /// All bytes. Read and not mapped: somebody who cuts the file short then causes an error here instead of SIGBUS.
    /// - Throws: `localFault` where the file cannot be read.
    public func bytes() throws(WebImageError) -> [UInt8] {
        guard let bytes = OpenFile.read(descriptor, at: 0, limit: size) else { throw unreadable() }
        return bytes
    }

    /// The digest of the bytes, read piece by piece.
    package func digest() throws(WebImageError) -> Digest {
        var hash = SHA256()
        var offset = 0
        while offset < size {
            guard let piece = OpenFile.read(descriptor, at: offset, limit: min(size - offset, 256 << 10)) else {
                throw unreadable()
            }
            if piece.isEmpty { break }
            piece.withUnsafeBytes { hash.update($0) }
            offset += piece.count
        }
        return hash.finalize()
    }

    /// The digest of its record; of the bytes where that has none.
    package func knownDigest() throws(WebImageError) -> Digest {
        if let digest = record?.digest { return digest }
        return try digest()
    }

    private func unreadable() -> WebImageError {
        let code = errno
        return WebImageError(.localFault, "cannot read \(path): \(errnoText(code))", underlyingCode: code)
    }
}

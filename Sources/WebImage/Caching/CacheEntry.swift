internal import CLinux
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

// MARK: - Handing

/// Handing an image out of the cache.
extension CacheEntry {
    /// The format by the record, or by the first bytes where that does not say; `unknown` where they say nothing either.
    package var format: ImageFormat {
        if let format = record?.format, format != .unknown { return format }
        let head = OpenFile.read(descriptor, at: 0, limit: min(size, 512)) ?? []
        return head.withUnsafeBytes { ImageFormat(sniffing: $0) } ?? .unknown
    }

    /// What the file takes of the disk, in bytes: less than its size where it has holes, more where it does not fill its last block.
    package var allocatedSize: Int {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int(status.st_blocks) * 512 : 0
    }

    /// Gives this very file a second name, whatever has happened to its first one meanwhile.
    /// - Returns: 0 or an errno of link(2); `ENOENT` where its last name has gone.
    package func link(into directory: Int32, as name: String) -> Int32 {
        clinux_link_fd(descriptor, directory, name) == 0 ? 0 : errno
    }

    /// Copies the bytes to where another file stands, by sharing blocks or inside the kernel where that is possible.
    /// - Returns: 0 or an errno.
    package func copy(to file: Int32) -> Int32 {
        var offset = 0
        while offset < size {
            let count = clinux_copy_range(descriptor, Int64(offset), file, size - offset)
            // Of no use between these two files (copy_file_range(2)); what a broken disk says is said again below.
            guard count > 0 else { break }
            offset += count
        }
        while offset < size {
            guard let piece = OpenFile.read(descriptor, at: offset, limit: min(size - offset, 256 << 10)) else {
                return errno
            }
            // Somebody cut the file short.
            if piece.isEmpty { return EIO }
            let code = OpenFile.write(piece, to: file)
            guard code == 0 else { return code }
            offset += piece.count
        }
        return 0
    }

    /// Whether another open file is this one, or has the same bytes.
    package func isSame(as file: Int32) -> Bool {
        var (own, other) = (stat(), stat())
        guard fstat(descriptor, &own) == 0, fstat(file, &other) == 0, other.st_mode & S_IFMT == S_IFREG else {
            return false
        }
        if own.st_dev == other.st_dev && own.st_ino == other.st_ino { return true }
        guard other.st_size == off_t(size) else { return false }
        var offset = 0
        while offset < size {
            let limit = min(size - offset, 256 << 10)
            guard let piece = OpenFile.read(descriptor, at: offset, limit: limit), !piece.isEmpty,
                piece == OpenFile.read(file, at: offset, limit: limit)
            else { return false }
            offset += piece.count
        }
        return true
    }
}

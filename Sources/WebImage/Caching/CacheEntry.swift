internal import CLinux
internal import Glibc

/// An image found in the cache: an open file, so that it stays readable whatever happens to its name.
public final class CacheEntry: Sendable {
    /// How far the entry can be trusted.
    public enum Standing: Sendable, Equatable {
        /// Its record says that it is complete and passed the requested level.
        case verified
        /// Its record says that it is complete, but passed only a lower level.
        case lower(ValidationLevel)
        /// Unknown: without a record, or copied here by other means.
        case unverified
    }

    /// The key of the image.
    public let key: CacheKey
    /// Path of the file; relative if the cache directory was given so.
    public let path: String
    /// Length in bytes.
    public let size: Int
    /// The record of the image, if it was made for this file.
    public let record: CacheRecord?
    /// The record as it is, also of another file that this one is a copy of: good for finding damage, but proof of nothing.
    let claim: CacheRecord?
    /// How far it can be trusted.
    public let standing: Standing

    let descriptor: Int32
    let inode: UInt
    /// What no copy of the file has (`clinux_stat_file`).
    let file: UInt32
    /// Seconds since 1970, from the file system.
    let accessedAt: Int
    /// Time of the last write, in seconds since 1970.
    package let modifiedAt: Int
    /// Last change of bytes, name or record, in nanoseconds since 1970 by the file system's clock.
    let changedAt: Int64
    let isFile: Bool
    /// Whether it is in a read-only tier: nothing about it may be changed.
    let isElsewhere: Bool
    /// Whether its record has another key: the file was renamed by others.
    let isForeign: Bool
    /// Whether it is a file of this key with the length in its record; without a record, of an acceptable length.
    let isWhole: Bool

    init(
        key: CacheKey, path: String, claim: CacheRecord?, isBelieved: Bool, isForeign: Bool = false,
        isElsewhere: Bool = false, level: ValidationLevel, maxUnverified: Int, file: consuming OpenFile, status: stat,
        identity: UInt32
    ) {
        self.key = key
        self.path = path
        self.claim = claim
        record = isBelieved ? claim : nil
        self.file = identity
        self.isForeign = isForeign
        self.isElsewhere = isElsewhere
        size = Int(status.st_size)
        inode = UInt(status.st_ino)
        accessedAt = Plausible.time(status.st_atim.tv_sec)
        modifiedAt = Plausible.time(status.st_mtim.tv_sec)
        changedAt = WriteOut.nanoseconds(status.st_ctim)
        isFile = status.st_mode & S_IFMT == S_IFREG
        isWhole =
            isFile && !isForeign && claim?.length ?? Int(status.st_size) == Int(status.st_size)
            && (record != nil || (1...max(1, maxUnverified)).contains(Int(status.st_size)))
        standing =
            if let record { record.level >= level ? .verified : .lower(record.level) } else { .unverified }
        descriptor = file.release()
    }

    deinit { close(descriptor) }

    /// Whether the bytes have to be verified before the entry counts as a hit; it is then raised or moved aside.
    public var needsVerification: Bool { standing != .verified }

    /// All bytes. Read instead of mapped: truncation by another process then causes an error here instead of SIGBUS.
    /// - Throws: `localFault` if the file cannot be read.
    public func bytes() throws(WebImageError) -> [UInt8] {
        guard let bytes = OpenFile.read(descriptor, at: 0, limit: size) else { throw unreadable() }
        return bytes
    }

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

    /// The digest in its record, otherwise of the bytes.
    package func knownDigest() throws(WebImageError) -> Digest {
        if let digest = record?.digest { return digest }
        return try digest()
    }

    private func unreadable() -> WebImageError {
        .fileFault("read \(path)")
    }
}

// MARK: - Exporting

extension CacheEntry {
    /// The format in the record, otherwise from the first bytes; `unknown` if neither has it.
    package var format: ImageFormat {
        if let format = record?.format, format != .unknown { return format }
        let head = OpenFile.read(descriptor, at: 0, limit: min(size, 512)) ?? []
        return head.withUnsafeBytes { ImageFormat(sniffing: $0) } ?? .unknown
    }

    /// Allocated bytes on disk: less than the size with holes, more with a partial last block.
    package var allocatedSize: Int {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int(status.st_blocks) * 512 : 0
    }

    /// Creates another name for this open file, whatever has happened to its first one.
    /// - Returns: 0 or an errno of link(2); `ENOENT` if its last name is gone.
    package func link(into directory: Int32, as name: String) -> Int32 {
        clinux_link_fd(descriptor, directory, name) == 0 ? 0 : errno
    }

    /// Copies the bytes to another file's position, by sharing blocks or inside the kernel if possible.
    /// - Returns: 0 or an errno.
    package func copy(to file: Int32) -> Int32 {
        var offset = 0
        while offset < size {
            let count = clinux_copy_range(descriptor, Int64(offset), file, size - offset)
            // Not supported between these files (copy_file_range(2)); disk errors recur below.
            guard count > 0 else { break }
            offset += count
        }
        while offset < size {
            guard let piece = OpenFile.read(descriptor, at: offset, limit: min(size - offset, 256 << 10)) else {
                return errno
            }
            // The file was truncated.
            if piece.isEmpty { return EIO }
            let code = OpenFile.write(piece, to: file)
            guard code == 0 else { return code }
            offset += piece.count
        }
        return 0
    }

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

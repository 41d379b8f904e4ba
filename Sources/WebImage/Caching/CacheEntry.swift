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
    /// Where the bytes begin: of an image in a shard not at the beginning of the file.
    private let start: Int
    /// What is known of the image's original, of an image in a shard.
    let shardValidators: HTTPValidators?
    package let inode: UInt
    /// What no copy of the file has (`clinux_stat_file`).
    let file: UInt32
    /// Seconds since 1970, from the file system.
    let accessedAt: Int
    /// Time of the last write, in seconds since 1970.
    package let modifiedAt: Int
    /// Last change of bytes, name or record, in nanoseconds since 1970 by the file system's clock.
    let changedAt: Int64
    let isFile: Bool
    /// Whether it is in a read-only tier, or in a shard: nothing about it may be changed.
    package let isElsewhere: Bool
    /// Whether it is a member of a shard's archive, and ``path`` that of the archive.
    package let isInShard: Bool
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
        (start, isInShard, shardValidators) = (0, false, nil)
        descriptor = file.release()
    }

    /// A member of a shard's archive.
    /// * `link`: the cache's own file, in the place of the image.
    init(
        key: CacheKey, _ member: consuming ShardedImages.Member, link: stat, isTrusted: Bool, level: ValidationLevel
    ) {
        let slot = member.slot
        self.key = key
        path = member.path
        claim = slot.record
        let isBelieved = CacheRecord.describes(slot.bytes, file: member.identity) && isTrusted
        record = isBelieved ? slot.record : nil
        file = member.identity
        isForeign = !CacheRecord.belongs(slot.bytes, to: key)
        (isElsewhere, isInShard, isFile) = (true, true, true)
        (start, size) = (slot.offset, slot.record.length)
        var validators = HTTPValidators()
        validators.contentDigest = slot.contentDigest
        shardValidators = validators
        inode = UInt(link.st_ino)
        accessedAt = Plausible.time(link.st_atim.tv_sec)
        modifiedAt = Plausible.time(link.st_mtim.tv_sec)
        changedAt = WriteOut.nanoseconds(link.st_ctim)
        var status = stat()
        isWhole = !isForeign && fstat(member.archive.descriptor, &status) == 0 && start + size <= Int(status.st_size)
        standing =
            if let record { record.level >= level ? .verified : .lower(record.level) } else { .unverified }
        descriptor = member.take()
    }

    deinit { close(descriptor) }

    /// Bytes of the image; nil with `errno`.
    private func read(at offset: Int, limit: Int) -> [UInt8]? {
        OpenFile.read(descriptor, at: start + offset, limit: max(0, min(limit, size - offset)))
    }

    /// What is recorded of an image that a check has just found whole.
    package var knownRecord: CacheRecord? { record ?? (isInShard ? claim : nil) }

    /// Whether the bytes have to be verified before the entry counts as a hit; it is then raised or moved aside.
    public var needsVerification: Bool { standing != .verified }

    /// All bytes. Read instead of mapped: truncation by another process then causes an error here instead of SIGBUS.
    /// - Throws: `localFault` if the file cannot be read.
    public func bytes() throws(WebImageError) -> [UInt8] {
        guard let bytes = read(at: 0, limit: size) else { throw unreadable() }
        return bytes
    }

    package func digest() throws(WebImageError) -> Digest {
        var hash = SHA256()
        var offset = 0
        while offset < size {
            guard let piece = read(at: offset, limit: 256 << 10) else { throw unreadable() }
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
        let head = read(at: 0, limit: 512) ?? []
        return head.withUnsafeBytes { ImageFormat(sniffing: $0) } ?? .unknown
    }

    /// Allocated bytes on disk: less than the size with holes, more with a partial last block. None of an image in a shard.
    package var allocatedSize: Int {
        var status = stat()
        return !isInShard && fstat(descriptor, &status) == 0 ? Int(status.st_blocks) * 512 : 0
    }

    /// Creates another name for this open file, whatever has happened to its first one.
    /// - Returns: 0 or an errno of link(2); `ENOENT` if its last name is gone, `EXDEV` if it is no file of its own.
    package func link(into directory: Int32, as name: String) -> Int32 {
        if isInShard { return EXDEV }
        return clinux_link_fd(descriptor, directory, name) == 0 ? 0 : errno
    }

    /// Copies the bytes to another file's position, by sharing blocks or inside the kernel if possible.
    /// - Returns: 0 or an errno.
    package func copy(to file: Int32) -> Int32 {
        var offset = 0
        while offset < size {
            let count = clinux_copy_range(descriptor, Int64(start + offset), file, size - offset)
            // Not supported between these files (copy_file_range(2)); disk errors recur below.
            guard count > 0 else { break }
            offset += count
        }
        while offset < size {
            guard let piece = read(at: offset, limit: 256 << 10) else { return errno }
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
        if !isInShard, own.st_dev == other.st_dev && own.st_ino == other.st_ino { return true }
        guard other.st_size == off_t(size) else { return false }
        var offset = 0
        while offset < size {
            guard let piece = read(at: offset, limit: 256 << 10), !piece.isEmpty,
                piece == OpenFile.read(file, at: offset, limit: piece.count)
            else { return false }
            offset += piece.count
        }
        return true
    }
}

internal import CLinux
internal import Glibc
internal import Threading

extension DiskCache {
    static let recordAttribute = "user.prefetch"
    static let validatorsAttribute = "user.prefetch.http"
    /// The record's file where there are no extended attributes: the image's name and this ending.
    static let sidecarSuffix = ".m"

    /// Looks an image up.
    ///
    /// A file that is shorter or longer than its record says, or empty, is moved into `bad/` and is a miss. One without a record
    /// is found, as unverified: whoever put it there, only its bytes can tell. What is no file (a symbolic link, a pipe), also in the place of
    /// a directory on the way, is moved aside likewise, and what a link leads to is not touched.
    /// - Parameters:
    ///   - key: which image.
    ///   - level: what it should have passed; the entry says whether it did.
    /// - Returns: nil where there is none.
    /// - Throws: `localFault` for anything but a missing or a damaged file.
    public func lookup(_ key: CacheKey, atLeast level: ValidationLevel = .decode) throws(WebImageError) -> CacheEntry? {
        try lookup(key, atLeast: level, isLocked: false)
    }

    /// * `isLocked`: whether the caller has locked the leaf directory.
    func lookup(
        _ key: CacheKey, atLeast level: ValidationLevel, isLocked: Bool
    ) throws(WebImageError) -> CacheEntry? {
        let found: CacheEntry?
        do throws(WebImageError) { found = try examined(key, level: level) } catch {
            guard Self.isObstacle(error.underlyingCode) else { throw error }
            clearWay(to: key, isLocked: isLocked)
            return nil
        }
        guard let entry = found else { return nil }
        guard entry.isWhole else {
            moveAside(entry, isLocked: isLocked)
            return nil
        }
        writeOut.found(changedAt: entry.changedAt)
        if configuration.expireType == .accessDate { noteAccess(entry) }
        return entry
    }

    /// Looks an image up by its key as a text: here, and where there is none in the read-only directories, one after the other.
    ///
    /// An image from one of those that needs verification needs it each time, because nothing is written down there.
    /// - Returns: nil where there is none.
    /// - Throws: as ``lookup(_:atLeast:)``, also of the read-only directories.
    public func lookup(
        forKey key: String, atLeast level: ValidationLevel = .decode
    ) throws(WebImageError) -> CacheEntry? {
        if let entry = try lookup(CacheKey(key), atLeast: level) { return entry }
        for tier in tiers {
            if let entry = try tier.entry(forKey: key, atLeast: level) { return entry }
        }
        return nil
    }

    /// Sets the access date where it is older than an hour. Explicitly, because most file systems are mounted with relatime or
    /// noatime (mount(8)); only the owner may, so for others it stays as it is.
    private func noteAccess(_ entry: CacheEntry) {
        guard !configuration.isReadOnly, Self.now() - entry.accessedAt > 3600 else { return }
        // UTIME_NOW and UTIME_OMIT: macros that Swift does not import.
        let times = [timespec(tv_sec: 0, tv_nsec: 0x3FFF_FFFF), timespec(tv_sec: 0, tv_nsec: 0x3FFF_FFFE)]
        futimens(entry.descriptor, times)
    }

    /// Opens the file of a key, whatever state it is in.
    func examined(_ key: CacheKey, level: ValidationLevel) throws(WebImageError) -> CacheEntry? {
        let call = calls.begin()
        defer { calls.end(call) }
        // O_NONBLOCK: opening a FIFO that somebody put here must not wait for a writer.
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        let leaf = leaves.descriptor(key)
        guard let file = OpenFile(clinux_open_beneath(leaf ?? root, leaf == nil ? key.path : key.name, flags, 0)) else {
            guard errno == ENOENT else { throw fault("look up an image") }
            return nil
        }
        var status = stat()
        guard fstat(file.descriptor, &status) == 0 else { throw fault("look up an image") }
        let path = key.path
        let isFile = status.st_mode & S_IFMT == S_IFREG
        let record = isFile ? try readRecord(of: file.descriptor, path: path) : nil
        return CacheEntry(
            key: key, path: "\(directory)/\(path)", record: record.flatMap { CacheRecord($0) },
            isForeign: record.map { !CacheRecord.belongs($0, to: key) } ?? false, isElsewhere: configuration.isTier,
            level: level, mostUnproved: configuration.maxUnprovedSize, file: file, status: status)
    }

    /// ETag, Last-Modified and key of an entry, where they were kept.
    public func validators(of entry: CacheEntry) -> HTTPValidators? {
        if current.attributes, let bytes = attribute(Self.validatorsAttribute, of: entry.descriptor, limit: 4096) {
            return HTTPValidators(bytes)
        }
        guard !entry.isElsewhere, let sidecar = try? readSidecar(entry.key.path),
            sidecar.count > CacheRecord.encodedLength
        else { return nil }
        return HTTPValidators(sidecar.dropFirst(CacheRecord.encodedLength))
    }

    /// Writes down that an entry has passed a level, once the caller has verified its bytes. An entry without a record gets one,
    /// with a digest of its bytes.
    /// - Returns: whether it is written; not in a cache this user may not write to, where it is verified again the next time.
    /// - Throws: `localFault`.
    @discardableResult
    public func raise(_ entry: CacheEntry, to info: ImageInfo) throws(WebImageError) -> Bool {
        let call = calls.begin()
        defer { calls.end(call) }
        var record: CacheRecord
        if let known = entry.record {
            record = known
            record.level = max(known.level, info.level)
            record.format = info.format
            if info.width > 0 { (record.width, record.height) = (info.width, info.height) }
        } else {
            record = CacheRecord(info, length: entry.size, digest: try entry.digest(), storedAt: Self.now())
        }
        return try rewrite(record, of: entry)
    }

    /// Replaces the record as a whole: readers see the old one or the new one.
    ///
    /// * `isLocked`: whether the caller has locked the leaf directory.
    func rewrite(
        _ record: CacheRecord, of entry: CacheEntry, isLocked: Bool = false
    ) throws(WebImageError) -> Bool {
        guard !configuration.isReadOnly, !entry.isElsewhere else { return false }
        if current.attributes {
            let code = replaceAttribute(Self.recordAttribute, record.encoded(for: entry.key), of: entry)
            if code == 0 { return true }
            if code == EACCES || code == EPERM || code == EROFS { return false }
            guard lacksAttributes(code) else { throw fault("write a record", code: code) }
        }
        return try rewriteSidecar(record.encoded(for: entry.key), of: entry, isLocked: isLocked) {
            self.validators(of: entry)
        }
    }

    /// Replaces the record's own file, unless another image has the name by now.
    func rewriteSidecar(
        _ record: [UInt8], of entry: CacheEntry, isLocked: Bool, validators: () -> HTTPValidators?
    ) throws(WebImageError) -> Bool {
        let leaf = try openLeaf(entry.key)
        let lock = isLocked ? nil : Self.lockFolder(leaf.descriptor)
        guard isLocked || lock != nil else { throw fault("write a record") }
        guard inode(of: entry.key) == entry.inode else { return false }
        try writeSidecar(record + (validators()?.encoded ?? []), name: entry.key.name, leaf: leaf.descriptor)
        _ = consume lock
        return true
    }

    /// Sets an attribute of a published file; returns 0 or an errno.
    func replaceAttribute(_ name: String, _ value: [UInt8], of entry: CacheEntry) -> Int32 {
        var code = setAttribute(name, value, of: entry.descriptor)
        if code == EACCES, fchmod(entry.descriptor, publishedMode | 0o200) == 0 {
            // A user's attribute asks for write permission of the file, which its owner has taken away (xattr(7)).
            code = setAttribute(name, value, of: entry.descriptor)
            fchmod(entry.descriptor, publishedMode)
        }
        return code
    }

    private func readRecord(of descriptor: Int32, path: String) throws(WebImageError) -> [UInt8]? {
        if current.attributes {
            if let bytes = attribute(Self.recordAttribute, of: descriptor, limit: 2 * CacheRecord.encodedLength) {
                return bytes
            }
            guard errno == ENODATA || errno == ERANGE || lacksAttributes(errno) else { throw fault("read a record") }
        }
        // Also where the file system has attributes: the cache may have been copied here from one that has none.
        return try readSidecar(path).map { Array($0.prefix(CacheRecord.encodedLength)) }
    }

    private func readSidecar(_ path: String) throws(WebImageError) -> [UInt8]? {
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        guard let file = OpenFile(clinux_open_beneath(root, path + Self.sidecarSuffix, flags, 0)) else {
            // What is no file says nothing; the next record takes its place.
            guard errno == ENOENT || Self.isObstacle(errno) else { throw fault("read a record") }
            return nil
        }
        var status = stat()
        guard fstat(file.descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        guard let bytes = OpenFile.read(file.descriptor, at: 0, limit: 4096) else { throw fault("read a record") }
        return bytes
    }

    /// An extended attribute; nil with `errno` where there is none, or one that is longer than `limit`.
    private func attribute(_ name: String, of descriptor: Int32, limit: Int) -> [UInt8]? {
        var length = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, filled in
            length = fgetxattr(descriptor, name, buffer.baseAddress, limit)
            filled = max(0, length)
        }
        return length < 0 ? nil : bytes
    }

    /// Returns 0 or an errno.
    func setAttribute(_ name: String, _ value: [UInt8], of descriptor: Int32) -> Int32 {
        fsetxattr(descriptor, name, value, value.count, 0) == 0 ? 0 : errno
    }

    /// Seconds since 1970.
    static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return time.tv_sec
    }
}

internal import CLinux
internal import Glibc

/// Records and validators of a cache's images, in extended attributes if supported, otherwise in a second file beside each image.
final class ImageRecords: Sendable {
    static let attribute = "user.prefetch"
    private static let validatorsAttribute = "user.prefetch.http"

    /// Permissions of a published file, which is never written again.
    let fileMode: mode_t
    private let directory: CacheDirectory
    private let leaves: LeafDirectories
    private let quarantine: Quarantine
    private let isSynced: Bool

    /// * `isSynced`: whether a record file is synced before it gets its name.
    init(_ directory: CacheDirectory, _ leaves: LeafDirectories, _ quarantine: Quarantine, isSynced: Bool) {
        (self.directory, self.leaves, self.quarantine) = (directory, leaves, quarantine)
        self.isSynced = isSynced
        fileMode = 0o444 & ~Self.umask()
    }

    // MARK: Reading

    /// The record of an open file; nil if it has none.
    /// * `path`: that of the image.
    func record(of descriptor: Int32, path: String) throws(WebImageError) -> [UInt8]? {
        if directory.features.known.attributes {
            if let bytes = Self.value(of: Self.attribute, descriptor, limit: 2 * CacheRecord.encodedLength) {
                return bytes
            }
            guard errno == ENODATA || errno == ERANGE || directory.features.lacksAttributes(errno) else {
                throw directory.fault("read a record")
            }
        }
        // Also with attributes: the cache may have been copied from a file system without.
        return try ownFile(path).map { Array($0.prefix(CacheRecord.encodedLength)) }
    }

    func validators(of entry: CacheEntry) -> HTTPValidators? {
        if let known = entry.shardValidators { return known }
        if directory.features.known.attributes,
            let bytes = Self.value(of: Self.validatorsAttribute, entry.descriptor, limit: 4096)
        {
            return HTTPValidators(bytes)
        }
        guard !entry.isElsewhere, let file = try? ownFile(entry.key.path), file.count > CacheRecord.encodedLength else {
            return nil
        }
        return HTTPValidators(file.dropFirst(CacheRecord.encodedLength))
    }

    private func ownFile(_ path: String) throws(WebImageError) -> [UInt8]? {
        guard let file = directory.open(path + CacheRecord.fileSuffix) else {
            // Non-files are ignored; the next record replaces them.
            guard errno == ENOENT || Quarantine.isObstacle(errno) else { throw directory.fault("read a record") }
            return nil
        }
        var status = stat()
        guard fstat(file.descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        guard let bytes = OpenFile.read(file.descriptor, at: 0, limit: 4096) else {
            throw directory.fault("read a record")
        }
        return bytes
    }

    /// An extended attribute; nil with `errno` if it is missing or longer than `limit`.
    private static func value(of name: String, _ descriptor: Int32, limit: Int) -> [UInt8]? {
        var length = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, filled in
            length = fgetxattr(descriptor, name, buffer.baseAddress, limit)
            filled = max(0, length)
        }
        return length < 0 ? nil : bytes
    }

    // MARK: Replacing

    /// Replaces the record atomically.
    /// * `isLocked`: whether the caller has locked the leaf directory.
    /// - Returns: whether it was written; not without permission, or if another file has taken the name.
    @discardableResult
    func replace(
        _ record: CacheRecord, of entry: CacheEntry, isLocked: Bool = false
    ) throws(WebImageError) -> Bool {
        guard !directory.isReadOnly, !entry.isElsewhere else { return false }
        let bytes = record.encoded(for: entry.key, file: entry.file)
        if directory.features.known.attributes {
            let code = replace(Self.attribute, bytes, of: entry)
            if code == 0 { return true }
            if code == EACCES || code == EPERM || code == EROFS { return false }
            guard directory.features.lacksAttributes(code) else { throw directory.fault("write a record", code: code) }
        }
        return try replaceOwnFile(bytes, of: entry, isLocked: isLocked) { self.validators(of: entry) }
    }

    /// Replaces the validators; the record stays. Does nothing without permission.
    /// - Throws: `localFault` if a record file cannot be written.
    func replace(_ validators: HTTPValidators, of entry: CacheEntry) throws(WebImageError) {
        if directory.features.known.attributes {
            let code = replace(Self.validatorsAttribute, validators.encoded, of: entry)
            if code == 0 || code == EACCES || code == EPERM || code == EROFS { return }
            guard directory.features.lacksAttributes(code) else { throw directory.fault("write a record", code: code) }
        }
        guard let record = entry.record else { return }
        let bytes = record.encoded(for: entry.key, file: entry.file)
        _ = try replaceOwnFile(bytes, of: entry, isLocked: false) { validators }
    }

    /// Unless another image has taken the name.
    private func replaceOwnFile(
        _ record: [UInt8], of entry: CacheEntry, isLocked: Bool, validators: () -> HTTPValidators?
    ) throws(WebImageError) -> Bool {
        let leaf = try leaves.open(entry.key)
        let lock = isLocked ? nil : FolderLock(leaf.descriptor)
        guard isLocked || lock != nil else { throw directory.fault("write a record") }
        guard leaves.inode(of: entry.key) == entry.inode else { return false }
        try writeOwnFile(record + (validators()?.encoded ?? []), name: entry.key.name, leaf: leaf.descriptor)
        _ = consume lock
        return true
    }

    /// Sets an attribute of a published file; returns 0 or an errno.
    private func replace(_ name: String, _ value: [UInt8], of entry: CacheEntry) -> Int32 {
        var code = Self.set(name, value, of: entry.descriptor)
        if code == EACCES, fchmod(entry.descriptor, fileMode | 0o200) == 0 {
            // A user attribute requires write permission on the file, which its owner has removed (xattr(7)).
            code = Self.set(name, value, of: entry.descriptor)
            fchmod(entry.descriptor, fileMode)
        }
        return code
    }

    // MARK: Attaching

    /// Attaches record and validators to a file without its final name.
    /// * `mode`: the file's permissions, which may have to change.
    /// - Returns: false if they need a file of their own.
    func attach(
        _ record: [UInt8], _ validators: HTTPValidators?, to descriptor: Int32, mode: inout mode_t
    ) throws(WebImageError) -> Bool {
        guard directory.features.known.attributes else { return false }
        var code = Self.set(Self.attribute, record, of: descriptor)
        if code != 0, mode & 0o200 == 0, directory.features.lacksAttributesOfReadOnlyFiles(code) {
            mode = 0o600
            guard fchmod(descriptor, mode) == 0 else { throw directory.fault("store an image") }
            code = Self.set(Self.attribute, record, of: descriptor)
        }
        if code == 0, let validators {
            code = Self.set(Self.validatorsAttribute, validators.encoded, of: descriptor)
        }
        if code == 0 { return true }
        guard directory.features.lacksAttributes(code) else { throw directory.fault("store an image", code: code) }
        return false
    }

    /// Writes a record file atomically. The caller has locked the leaf directory.
    func writeOwnFile(_ bytes: [UInt8], name: String, leaf: Int32) throws(WebImageError) {
        let temporary = TemporaryFiles.name()
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        guard let file = OpenFile(clinux_open_beneath(leaf, temporary, flags, fileMode)) else {
            throw directory.fault("write a record")
        }
        let name = name + CacheRecord.fileSuffix
        var code = OpenFile.write(bytes, to: file.descriptor)
        if code == 0, isSynced, fdatasync(file.descriptor) != 0 { code = errno }
        if code == 0, renameat(leaf, temporary, leaf, name) != 0 {
            code = errno
            // The name is a directory; links and pipes are replaced by the rename.
            if code == EISDIR, quarantine.moveStray(name, of: leaf), renameat(leaf, temporary, leaf, name) == 0 {
                code = 0
            }
        }
        guard code == 0 else {
            unlinkat(leaf, temporary, 0)
            throw directory.fault("write a record", code: code)
        }
    }

    static func set(_ name: String, _ value: [UInt8], of descriptor: Int32) -> Int32 {
        name.withCString { fsetxattr(descriptor, $0, value, value.count, 0) == 0 ? 0 : errno }
    }

    /// From /proc (proc(5)): umask(2) can only be read by changing it, which other threads could see.
    private static func umask() -> mode_t {
        guard let file = OpenFile(clinux_open("/proc/self/status", O_RDONLY | O_CLOEXEC, 0)),
            let bytes = OpenFile.read(file.descriptor, at: 0, limit: 4096)
        else { return 0o022 }
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") where line.hasPrefix("Umask:") {
            return mode_t(line.dropFirst(6).drop { $0 == " " || $0 == "\t" }, radix: 8) ?? 0o022
        }
        return 0o022
    }
}

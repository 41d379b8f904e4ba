internal import CLinux
internal import Glibc
internal import Threading

/// The images in a cache's directory: one file each, named by a digest of its key, with its record.
///
/// All methods may block on the disk; call them from a thread that may.
public final class ImageFiles: Sendable {
    private let directory: CacheDirectory
    private let leaves: LeafDirectories
    private let account: CacheAccount
    private let quarantine: Quarantine
    private let writeOut: WriteOut
    private let trust: CacheTrust
    private let configuration: DiskCache.Configuration
    private let sharded: ShardedImages
    let records: ImageRecords
    /// Nanoseconds since 1970: found images that changed before are marked; 0: none are.
    private let markedSince = Locked<Int64>(0)

    init(
        _ directory: CacheDirectory, _ leaves: LeafDirectories, _ account: CacheAccount, _ quarantine: Quarantine,
        _ writeOut: WriteOut, _ trust: CacheTrust, _ configuration: DiskCache.Configuration
    ) {
        (self.directory, self.leaves, self.account, self.quarantine) = (directory, leaves, account, quarantine)
        (self.writeOut, self.trust, self.configuration) = (writeOut, trust, configuration)
        sharded = ShardedImages(directory)
        records = ImageRecords(directory, leaves, quarantine, isSynced: configuration.durability == .file)
    }

    /// Path of an image, even if it does not exist.
    public func path(of key: CacheKey) -> String { "\(directory.path)/\(key.path)" }

    // MARK: Finding

    /// Finds an image.
    ///
    /// An empty file, or one whose length differs from its record, is moved into `bad/` and is a miss. One without a record is found as
    /// unverified. Non-files (symbolic links, pipes), also in place of directories, are moved aside; link targets are not touched.
    /// - Parameters:
    ///   - key: the key of the image.
    ///   - level: the level it should have passed; the entry says whether it has.
    /// - Returns: nil if there is none.
    /// - Throws: `localFault` for anything but a missing or damaged file.
    public func find(_ key: CacheKey, atLeast level: ValidationLevel = .decode) throws(WebImageError) -> CacheEntry? {
        try find(key, atLeast: level, isLocked: false)
    }

    /// * `isLocked`: whether the caller has locked the leaf directory.
    func find(
        _ key: CacheKey, atLeast level: ValidationLevel, isLocked: Bool
    ) throws(WebImageError) -> CacheEntry? {
        let found: CacheEntry?
        do throws(WebImageError) { found = try open(key, level: level) } catch {
            guard Quarantine.isObstacle(error.underlyingCode) else { throw error }
            quarantine.clearWay(to: key, isLocked: isLocked)
            return nil
        }
        guard let entry = found else { return nil }
        guard entry.isWhole else {
            quarantine.moveImage(key, inode: entry.inode, isLocked: isLocked)
            return nil
        }
        writeOut.found(changedAt: entry.changedAt)
        if configuration.expireType == .accessDate { recordAccess(entry) }
        return mark(entry, isLocked: isLocked) ? entry : nil
    }

    // MARK: Marking

    /// From now on each found image gets a new change date, unless it has changed since that time, so that a ``CacheProtection`` from that
    /// time protects it. Costs a write of its inode.
    /// * `since`: seconds since 1970 by this machine's clock; nil ends it.
    package func markFound(since: Double?) {
        markedSince.withLock { $0 = since.map { CacheProtection.moment($0) } ?? 0 }
    }

    /// Marks an image where that is asked; false if it has lost its name meanwhile. Only the owner may, so for others it stays as it is.
    /// * `isLocked`: whether the caller has locked the leaf directory.
    private func mark(_ entry: CacheEntry, isLocked: Bool) -> Bool {
        guard !entry.isInShard, entry.changedAt < markedSince.withLock({ $0 }), !directory.isReadOnly else {
            return true
        }
        // A sweep that has chosen the image checks its change date under this lock, and then removes it.
        let lock = isLocked ? nil : FolderLock(directory.descriptor, entry.key.leaf)
        var status = stat()
        // The same mode: a call that sets the change date and neither of the others.
        guard fstat(entry.descriptor, &status) == 0, fchmod(entry.descriptor, status.st_mode & 0o7777) == 0 else {
            return true
        }
        let isThere = leaves.inode(of: entry.key) == entry.inode
        _ = consume lock
        return isThere
    }

    /// Opens the file of a key in any state. Does not count as an access and moves nothing.
    func open(_ key: CacheKey, level: ValidationLevel) throws(WebImageError) -> CacheEntry? {
        let call = directory.calls.begin()
        defer { directory.calls.end(call) }
        // O_NONBLOCK: opening a FIFO must not wait for a writer.
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        let leaf = leaves.descriptor(key)
        let opened = key.withCString(isPath: leaf == nil) {
            clinux_open_beneath(leaf ?? directory.descriptor, $0, flags, 0)
        }
        guard let file = OpenFile(opened) else {
            let code = errno
            if code == ELOOP, let entry = inShard(key, level) { return entry }
            guard code == ENOENT else { throw directory.fault("look up an image", code: code) }
            return nil
        }
        var status = stat()
        var identity: UInt32 = 0
        guard clinux_stat_file(file.descriptor, &status, &identity) == 0 else {
            throw directory.fault("look up an image")
        }
        let path = key.path
        let isFile = status.st_mode & S_IFMT == S_IFREG
        let record = isFile ? try records.record(of: file.descriptor, path: path) : nil
        return CacheEntry(
            key: key, path: "\(directory.path)/\(path)", claim: record.flatMap { CacheRecord($0) },
            isBelieved: record.map { CacheRecord.describes($0, file: identity) } ?? false
                && trust.covers(status.st_uid),
            isForeign: record.map { !CacheRecord.belongs($0, to: key) } ?? false, isElsewhere: configuration.isTier,
            level: level, maxUnverified: configuration.maxUnverifiedSize, file: file, status: status,
            identity: identity)
    }

    /// An image in whose place there is a link to a shard.
    private func inShard(_ key: CacheKey, _ level: ValidationLevel) -> CacheEntry? {
        guard let leaf = directory.folder(key.leaf) else { return nil }
        return key.withCString(isPath: false) { name in
            var status = stat()
            guard fstatat(leaf.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
                let member = sharded.member(name, in: leaf.descriptor)
            else { return nil }
            let isTrusted = trust.covers(member.owner)
            return CacheEntry(key: key, member, link: status, isTrusted: isTrusted, level: level)
        }
    }

    /// Sets an access date older than an hour. Explicitly, because most file systems are mounted with relatime or noatime (mount(8)); only
    /// the owner may, so for others it stays unchanged.
    private func recordAccess(_ entry: CacheEntry) {
        guard !directory.isReadOnly, !entry.isInShard, WallClock.seconds - entry.accessedAt > 3600 else { return }
        // UTIME_NOW and UTIME_OMIT, macros that Swift does not import.
        let times = [timespec(tv_sec: 0, tv_nsec: 0x3FFF_FFFF), timespec(tv_sec: 0, tv_nsec: 0x3FFF_FFFE)]
        futimens(entry.descriptor, times)
    }

    /// ETag, Last-Modified and key of an entry, if stored.
    public func validators(of entry: CacheEntry) -> HTTPValidators? { records.validators(of: entry) }

    /// Visits every image with its file and record, in key order, until `visit` returns false. Concurrent additions and removals may be
    /// missed. Changes nothing; uses constant memory.
    /// * `unreadable`: receives unreadable entries with an image's name, and the system's error text.
    /// - Throws: `localFault` if the cache itself cannot be read.
    package func forEach(
        unreadable: (_ path: String, _ reason: String) -> Void, _ visit: (CacheEntry) -> Bool
    ) throws(WebImageError) {
        var isOver = false
        do throws(WebImageError) {
            for leaf in try leaves.paths() {
                try leaves.walk(leaf) { key, _, _ throws(WebImageError) in
                    let entry: CacheEntry?
                    do throws(WebImageError) { entry = try open(key, level: .none) } catch {
                        unreadable(path(of: key), error.message)
                        return
                    }
                    guard let entry, !visit(entry) else { return }
                    isOver = true
                    throw WebImageError(.cancelled, "enough of the cache was seen")
                }
            }
        } catch {
            if !isOver { throw error }
        }
    }

    // MARK: Storing

    /// Publishes a verified image atomically: readers never see a part of it, and a kill leaves nothing or the complete file with its
    /// record.
    ///
    /// If the key is taken, the existing file stays if it is complete and has passed at least the same level. If ``removeAll()`` removes
    /// its directory meanwhile, the store recreates it.
    /// - Parameters:
    ///   - body: the bytes; a body in a file of ``TemporaryFiles/open()`` is published without a copy.
    ///   - key: the key of the image.
    ///   - record: its record; the length is taken from the body.
    ///   - validators: of the response it came with.
    ///   - replacing: also replace a complete file if the bytes differ (`refreshCached`).
    /// - Returns: the result.
    /// - Throws: `localFault` with a sentence that names the directory.
    @discardableResult
    public func store(
        _ body: ImageBody, for key: CacheKey, record: CacheRecord, validators: HTTPValidators? = nil,
        replacing: Bool = false
    ) throws(WebImageError) -> StoreResult {
        guard !directory.isReadOnly else { throw directory.fault("store an image", code: EROFS) }
        var record = record
        record.length = body.count
        let publication = ImagePublication(
            key: key, body: body, record: record, validators: validators, replacing: replacing,
            isSynced: configuration.durability == .file, directory: directory, account: account, images: self)
        // removeAll removes the image's directory and the one above at most once; recreated ones are young. Two may be running.
        for _ in 0..<4 {
            do throws(WebImageError) { return try store(publication) } catch {
                guard Self.lostItsDirectory(error) else { throw error }
                // A directory can be opened by name until its removal completes; recreating it waits for that.
                if let parent = directory.folder("v1/\(key.leaf.dropFirst(3).prefix(1))") {
                    mkdirat(parent.descriptor, String(key.leaf.suffix(1)), 0o777)
                }
            }
        }
        return try store(publication)
    }

    private func store(_ publication: borrowing ImagePublication) throws(WebImageError) -> StoreResult {
        let call = directory.calls.begin()
        defer { directory.calls.end(call) }
        // For an existing image, the lookup has recorded it too.
        defer { if configuration.durability != .file { writeOut.stored() } }
        do throws(WebImageError) {
            return try publication.publish(in: try leaves.open(publication.key))
        } catch {
            // The cached directory was removed.
            guard Self.lostItsDirectory(error), leaves.forget(publication.key) else { throw error }
            return try publication.publish(in: try leaves.open(publication.key))
        }
    }

    /// EPERM: ext4's error for an unnamed file in a removed directory; an unnamed file does not prevent the removal of its directory.
    private static func lostItsDirectory(_ error: WebImageError) -> Bool {
        error.underlyingCode == ENOENT || error.underlyingCode == EPERM
    }

    /// Verifies and stores an image.
    /// * `replacing`: replace that of the key if the bytes differ.
    /// - Returns: the result of the check.
    /// - Throws: `badImageData` if it is not a valid image, then nothing is stored; `localFault`.
    @discardableResult
    package func storeVerified(
        _ data: [UInt8], forKey key: String, level: ValidationLevel, coder: ImageCoder = ImageCoder(),
        replacing: Bool = true
    ) throws(WebImageError) -> ImageInfo {
        let image = try MemoryImage(verifying: data, level: level, coder: coder)
        try store(
            ImageBody(image.bytes), for: CacheKey(key), record: CacheRecord(image), replacing: replacing)
        return image.info
    }

    // MARK: Describing

    /// Records that an entry has passed a level, after the caller has verified its bytes. One without a record that is believed gets one, with
    /// a digest.
    /// - Returns: whether it was recorded; not in a cache without write permission, where it is verified again next time.
    /// - Throws: `localFault`.
    @discardableResult
    public func raise(_ entry: CacheEntry, to info: ImageInfo) throws(WebImageError) -> Bool {
        let call = directory.calls.begin()
        defer { directory.calls.end(call) }
        var record: CacheRecord
        if let known = entry.record {
            record = known
            record.level = max(known.level, info.level)
            if info.width > 0 || known.width == 0 { record.describe(info) }
        } else {
            record = CacheRecord(
                info, original: entry.claim?.original, length: entry.size, digest: try entry.digest(),
                storedAt: entry.claim?.storedAt ?? WallClock.seconds)
        }
        return try records.replace(record, of: entry)
    }

    /// Records a revalidation: the file's dates become now, as if it was fetched now, and validators and freshness are updated. Only the
    /// owner may do either; otherwise the file stays unchanged and is revalidated again next time.
    /// - Returns: false if the file was removed or replaced meanwhile; then nothing is recorded.
    /// - Throws: `localFault`; also if a record file cannot be written.
    package func renew(_ entry: CacheEntry, validators: HTTPValidators) throws(WebImageError) -> Bool {
        if entry.isElsewhere { return true }
        guard let current = try find(entry.key, atLeast: .none), current.inode == entry.inode else { return false }
        guard !directory.isReadOnly else { return true }
        // Nil sets both times to now (futimens(3)).
        futimens(current.descriptor, nil)
        if records.validators(of: current) != validators { try records.replace(validators, of: current) }
        return true
    }

    // MARK: Removing

    /// Moves a damaged entry into `bad/`; from then on it is a miss. Does nothing if another file has taken the name meanwhile.
    public func moveAside(_ entry: CacheEntry) {
        if !entry.isElsewhere || entry.isInShard { quarantine.moveImage(entry.key, inode: entry.inode) }
    }

    /// Removes an image. Open files stay readable.
    /// - Returns: whether there was one.
    /// - Throws: `localFault`.
    @discardableResult
    public func remove(_ key: CacheKey) throws(WebImageError) -> Bool {
        guard !directory.isReadOnly else { throw directory.fault("remove an image", code: EROFS) }
        guard let leaf = FolderLock(directory.descriptor, key.leaf) else {
            guard errno == ENOENT || Quarantine.isObstacle(errno) else { throw directory.fault("remove an image") }
            quarantine.clearWay(to: key)
            return false
        }
        var status = stat()
        // Non-files are not in the account.
        let isFile =
            fstatat(leaf.descriptor, key.name, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_mode & S_IFMT == S_IFREG
        let code =
            isFile
            ? leaves.unlink(key.name, of: leaf, index: key.leafIndex, length: Int(status.st_size))
            : unlinkat(leaf.descriptor, key.name, 0) == 0
                || errno == EISDIR && quarantine.clearWay(to: key, isLocked: true)
                ? 0 : errno
        guard code == 0 || code == ENOENT else { throw directory.fault("remove an image", code: code) }
        return code == 0
    }

    /// Puts a link to the archive of a shard beside the cache in the place of an image, which is the same.
    /// * `place`: of its line in the shard.
    /// * `file`: the image's file and its length; nil: there is none, and if there is one, it stays.
    /// - Returns: false if another file has the name.
    /// - Throws: `localFault`.
    @discardableResult
    package func link(
        _ key: CacheKey, toShard shard: String, _ place: Int, replacing file: (inode: UInt, length: Int)?
    ) throws(WebImageError) -> Bool {
        let target = ShardedImages.link(shard, place)
        guard let file else {
            let code = symlinkat(target, try leaves.open(key).descriptor, key.name) == 0 ? 0 : errno
            guard code == 0 || code == EEXIST else { throw directory.fault("store an image", code: code) }
            return code == 0
        }
        guard let leaf = FolderLock(directory.descriptor, key.leaf) else { throw directory.fault("replace an image") }
        var status = stat()
        guard fstatat(leaf.descriptor, key.name, &status, AT_SYMLINK_NOFOLLOW) == 0, UInt(status.st_ino) == file.inode,
            status.st_mode & S_IFMT == S_IFREG
        else { return false }
        let link = TemporaryFiles.name()
        guard symlinkat(target, leaf.descriptor, link) == 0 else { throw directory.fault("replace an image") }
        guard renameat(leaf.descriptor, link, leaf.descriptor, key.name) == 0 else {
            let code = errno
            unlinkat(leaf.descriptor, link, 0)
            throw directory.fault("replace an image", code: code)
        }
        unlinkat(leaf.descriptor, key.name + CacheRecord.fileSuffix, 0)
        account.add(images: -1, blocks: -CacheAccount.blocks(file.length), leaf: key.leafIndex)
        return true
    }

    /// Removes every image, and directories not changed within the last minute; `.prefetch` and `bad` stay. Open files stay readable.
    ///
    /// Safe during stores: an image stored meanwhile is complete or absent.
    /// - Returns: the number of removed images.
    /// - Throws: `localFault`; `cancelled` if the task is cancelled, after some images may have been removed.
    @discardableResult
    public func removeAll() throws(WebImageError) -> Int {
        guard !directory.isReadOnly else { throw directory.fault("remove an image", code: EROFS) }
        return try CacheClearing(directory: directory, leaves: leaves).run()
    }
}

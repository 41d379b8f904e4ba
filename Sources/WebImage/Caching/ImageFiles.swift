internal import CLinux
internal import Glibc
internal import Threading

/// The images in a cache's own directory: a file each, under a digest of its key, with its record.
///
/// All methods may block on the disk; call them from a thread that may.
public final class ImageFiles: Sendable {
    private let directory: CacheDirectory
    private let leaves: LeafDirectories
    private let account: CacheAccount
    private let quarantine: Quarantine
    private let writeOut: WriteOut
    private let configuration: DiskCache.Configuration
    let records: ImageRecords

    init(
        _ directory: CacheDirectory, _ leaves: LeafDirectories, _ account: CacheAccount, _ quarantine: Quarantine,
        _ writeOut: WriteOut, _ configuration: DiskCache.Configuration
    ) {
        (self.directory, self.leaves, self.account, self.quarantine) = (directory, leaves, account, quarantine)
        (self.writeOut, self.configuration) = (writeOut, configuration)
        records = ImageRecords(directory, leaves, quarantine, isSynced: configuration.durability == .file)
    }

    /// Where an image is, or would be.
    public func path(of key: CacheKey) -> String { "\(directory.path)/\(key.path)" }

    // MARK: Finding

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
        if configuration.expireType == .accessDate { noteAccess(entry) }
        return entry
    }

    /// Opens the file of a key, whatever state it is in. Notes and moves nothing: to ask is no use of it.
    /// - Throws: `localFault`.
    func open(_ key: CacheKey, level: ValidationLevel) throws(WebImageError) -> CacheEntry? {
        let call = directory.calls.begin()
        defer { directory.calls.end(call) }
        // O_NONBLOCK: opening a FIFO that somebody put here must not wait for a writer.
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        let leaf = leaves.descriptor(key)
        let opened = clinux_open_beneath(
            leaf ?? directory.descriptor, leaf == nil ? key.path : key.name, flags, 0)
        guard let file = OpenFile(opened) else {
            guard errno == ENOENT else { throw directory.fault("look up an image") }
            return nil
        }
        var status = stat()
        guard fstat(file.descriptor, &status) == 0 else { throw directory.fault("look up an image") }
        let path = key.path
        let isFile = status.st_mode & S_IFMT == S_IFREG
        let record = isFile ? try records.record(of: file.descriptor, path: path) : nil
        return CacheEntry(
            key: key, path: "\(directory.path)/\(path)", record: record.flatMap { CacheRecord($0) },
            isForeign: record.map { !CacheRecord.belongs($0, to: key) } ?? false, isElsewhere: configuration.isTier,
            level: level, mostUnproved: configuration.maxUnprovedSize, file: file, status: status)
    }

    /// Sets the access date where it is older than an hour. Explicitly, because most file systems are mounted with relatime or
    /// noatime (mount(8)); only the owner may, so for others it stays as it is.
    private func noteAccess(_ entry: CacheEntry) {
        guard !directory.isReadOnly, WallClock.seconds - entry.accessedAt > 3600 else { return }
        // UTIME_NOW and UTIME_OMIT: macros that Swift does not import.
        let times = [timespec(tv_sec: 0, tv_nsec: 0x3FFF_FFFF), timespec(tv_sec: 0, tv_nsec: 0x3FFF_FFFE)]
        futimens(entry.descriptor, times)
    }

    /// ETag, Last-Modified and key of an entry, where they were kept.
    public func validators(of entry: CacheEntry) -> HTTPValidators? { records.validators(of: entry) }

    /// Visits every image with its file and its record, in the order of the keys, until `visit` returns false. Files that come or go
    /// meanwhile may be visited or not; nothing is changed or moved. In constant memory.
    ///
    /// * `unreadable`: hears of what has an image's name and is none that can be read, with the system's words.
    /// - Throws: `localFault` where the cache itself cannot be read.
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

    /// Publishes a verified image in one atomic step: nobody ever sees a part of it, and a kill at any instruction leaves either
    /// nothing or the whole file with its record.
    ///
    /// Where the key is taken, the first file stays if it is whole and has passed at least the same level. A store that loses its directory to
    /// ``removeAll()`` between two of its steps makes it anew.
    /// - Parameters:
    ///   - body: the bytes; a body that has gone to the file of ``TemporaryFiles/open()`` is published without a copy.
    ///   - key: its name.
    ///   - record: what is known of it; the length is taken from the body.
    ///   - validators: kept only where the configuration or `keepsValidators` says so.
    ///   - replacing: put it in the place of a whole file too, where the bytes differ (`refreshCached`).
    ///   - keepsValidators: keep them whatever the configuration says.
    /// - Returns: what became of it.
    /// - Throws: `localFault` with a sentence that names the directory.
    @discardableResult
    public func store(
        _ body: ImageBody, for key: CacheKey, record: CacheRecord, validators: HTTPValidators? = nil,
        replacing: Bool = false, keepsValidators: Bool = false
    ) throws(WebImageError) -> StoreResult {
        guard !directory.isReadOnly else { throw directory.fault("store an image", code: EROFS) }
        var record = record
        record.length = body.count
        let publication = ImagePublication(
            key: key, body: body, record: record,
            validators: keepsValidators || configuration.keepsHTTPValidators ? validators : nil, replacing: replacing,
            isSynced: configuration.durability == .file, directory: directory, account: account, images: self)
        // removeAll takes the image's directory away at most once, and the one above; what is made anew is young. Two may be under way.
        for _ in 0..<4 {
            do throws(WebImageError) { return try store(publication) } catch {
                guard Self.lostItsDirectory(error) else { throw error }
                // A directory can be opened by its name until its removal is over; making it anew waits for that.
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
        // What was there already was looked up, which notes it too.
        defer { if configuration.durability != .file { writeOut.stored() } }
        do throws(WebImageError) {
            return try publication.publish(in: try leaves.open(publication.key))
        } catch {
            // Somebody removed the directory that was kept open.
            guard Self.lostItsDirectory(error), leaves.forget(publication.key) else { throw error }
            return try publication.publish(in: try leaves.open(publication.key))
        }
    }

    /// EPERM: ext4's answer to an unnamed file in a directory that is gone; a file without a name does not keep its directory from being
    /// removed.
    private static func lostItsDirectory(_ error: WebImageError) -> Bool {
        error.underlyingCode == ENOENT || error.underlyingCode == EPERM
    }

    /// Verifies an image and stores it.
    ///
    /// * `replacing`: in place of the one under its key, where the bytes differ.
    /// - Returns: what the check found out.
    /// - Throws: `badImageData` where it is no whole image, nothing is stored then; `localFault`.
    @discardableResult
    package func storeVerified(
        _ data: [UInt8], forKey key: String, level: ValidationLevel, coder: ImageCoder = ImageCoder(),
        replacing: Bool = true
    ) throws(WebImageError) -> ImageInfo {
        let image = try MemoryImage(verifying: data, level: level, coder: coder)
        try store(
            ImageBody(image.bytes), for: CacheKey(key), record: CacheRecord(image),
            validators: HTTPValidators(key: key), replacing: replacing)
        return image.info
    }

    // MARK: Describing

    /// Writes down that an entry has passed a level, once the caller has verified its bytes. An entry without a record gets one,
    /// with a digest of its bytes.
    /// - Returns: whether it is written; not in a cache this user may not write to, where it is verified again the next time.
    /// - Throws: `localFault`.
    @discardableResult
    public func raise(_ entry: CacheEntry, to info: ImageInfo) throws(WebImageError) -> Bool {
        let call = directory.calls.begin()
        defer { directory.calls.end(call) }
        var record: CacheRecord
        if let known = entry.record {
            record = known
            record.level = max(known.level, info.level)
            record.format = info.format
            if info.width > 0 { (record.width, record.height) = (info.width, info.height) }
        } else {
            record = CacheRecord(info, length: entry.size, digest: try entry.digest(), storedAt: WallClock.seconds)
        }
        return try records.replace(record, of: entry)
    }

    /// Notes that the server was asked and still has this very image: the file's dates become now, so that it is as young as one that was
    /// fetched now, and what the server said this time of its validators and freshness is written down.
    ///
    /// Nobody but the owner may do either; then the file stays as it is and is asked for again the next time.
    /// - Returns: false where the name is not that of this file any more, nothing is noted then: somebody has removed or replaced it.
    /// - Throws: `localFault`; also where a record's own file cannot be written.
    package func renew(_ entry: CacheEntry, validators: HTTPValidators) throws(WebImageError) -> Bool {
        if entry.isElsewhere { return true }
        guard let current = try find(entry.key, atLeast: .none), current.inode == entry.inode else { return false }
        guard !directory.isReadOnly else { return true }
        // No times: both become now (futimens(3)).
        futimens(current.descriptor, nil)
        if records.validators(of: current) != validators { try records.replace(validators, of: current) }
        return true
    }

    // MARK: Removing

    /// Moves a damaged entry out of the way, into `bad/`; from then on it is a miss. Does nothing where another file has taken the
    /// name in the meantime.
    public func moveAside(_ entry: CacheEntry) {
        if !entry.isElsewhere { quarantine.moveImage(entry.key, inode: entry.inode) }
    }

    /// Removes an image. Whoever has it open keeps it.
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
        // What is no file is not in the account.
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

    /// Removes every image, and the directories they were in unless they changed within the last minute; `.prefetch`, its lock files and
    /// `bad` stay. Whoever has an image open keeps it.
    ///
    /// Safe while others store: an image that is stored meanwhile is there whole or not at all.
    /// - Returns: how many images were removed.
    /// - Throws: `localFault`; `cancelled` where the task is cancelled, what was removed until then is gone.
    @discardableResult
    public func removeAll() throws(WebImageError) -> Int {
        guard !directory.isReadOnly else { throw directory.fault("remove an image", code: EROFS) }
        return try CacheClearing(directory: directory, leaves: leaves).run()
    }
}

internal import CLinux
internal import Glibc

/// One store of an image: writes bytes and record to a file without its final name, then publishes it atomically.
struct ImagePublication {
    let key: CacheKey
    let body: ImageBody
    /// With the length of the body.
    let record: CacheRecord
    let validators: HTTPValidators?
    /// Whether it also replaces a complete file if the bytes differ.
    let replacing: Bool
    /// Whether file and directory are synced before it counts.
    let isSynced: Bool
    let directory: CacheDirectory
    let account: CacheAccount
    let images: ImageFiles

    /// Stores it in the leaf directory of its key.
    /// - Throws: `localFault`, with ENOENT (or EPERM on ext4) if the directory has been removed.
    func publish(in leaf: borrowing LeafDirectories.Leaf) throws(WebImageError) -> StoreResult {
        let leaf = leaf.descriptor
        let records = images.records
        let file = try fill(leaf)
        defer { if let name = file.new.temporaryName { unlinkat(leaf, name, 0) } }
        var status = stat()
        var identity: UInt32 = 0
        guard clinux_stat_file(file.new.descriptor, &status, &identity) == 0 else { throw fault() }
        let encoded = record.encoded(for: key, file: identity)
        var mode = file.mode
        let isDescribed = try records.attach(encoded, validators, to: file.new.descriptor, mode: &mode)
        if mode != records.fileMode, fchmod(file.new.descriptor, records.fileMode) != 0 { throw fault() }
        if isSynced, fdatasync(file.new.descriptor) != 0 { throw fault() }
        // Two names cannot appear atomically, so only one process at a time publishes such a pair in this directory.
        let pairLock = isDescribed ? nil : FolderLock(leaf)
        guard isDescribed || pairLock != nil else { throw fault() }
        let ownRecord = pairLock == nil ? nil : encoded + (validators?.encoded ?? [])
        let result = try publish(file.new, ownRecord, in: leaf)
        if isSynced, fsync(leaf) != 0 { throw fault() }
        _ = consume pairLock
        return result
    }

    // MARK: Bytes

    private struct Filled: ~Copyable {
        let new: NewFile
        let mode: mode_t
        /// Nil if the descriptor belongs to the body.
        private let own: OpenFile?

        init(body descriptor: Int32, in leaf: Int32) {
            new = NewFile(descriptor, temporaryName: nil, in: leaf)
            mode = 0o600
            own = nil
        }

        init(_ new: NewFile, mode: mode_t) {
            self.new = new
            self.mode = mode
            own = OpenFile(new.descriptor)
        }
    }

    private func fill(_ leaf: Int32) throws(WebImageError) -> Filled {
        let features = directory.features.known
        if features.unnamedFiles, let descriptor = body.fileDescriptor, isUnnamedHere(descriptor) {
            return Filled(body: descriptor, in: leaf)
        }
        // Not read-only from the start if an attribute requires write permission on the file itself (xattr(7)).
        let mode = features.attributesOfReadOnlyFiles ? images.records.fileMode : 0o600
        let new = NewFile.make(
            in: leaf, mode: mode, isUnnamed: features.unnamedFiles, temporaryName: TemporaryFiles.name())
        guard let new else { throw fault() }
        let file = Filled(new, mode: mode)
        if features.unnamedFiles, new.temporaryName != nil { directory.features.recordNoUnnamedFiles() }
        do throws(WebImageError) { try write(to: new.descriptor) } catch {
            if let name = new.temporaryName { unlinkat(leaf, name, 0) }
            throw error
        }
        return file
    }

    private func write(to descriptor: Int32) throws(WebImageError) {
        try body.withUnsafeBytes { bytes throws(WebImageError) in
            let code = OpenFile.write(bytes, to: descriptor)
            guard code == 0 else { throw fault(code) }
        }
    }

    /// Whether the body's file can be linked into this cache: it never had a name, and is on the same file system.
    private func isUnnamedHere(_ descriptor: Int32) -> Bool {
        var (file, own) = (stat(), stat())
        return fstat(descriptor, &file) == 0 && fstat(directory.descriptor, &own) == 0 && file.st_dev == own.st_dev
            && file.st_nlink == 0
    }

    // MARK: Name

    /// * `ownRecord`: the bytes of its record file, if needed; then the leaf directory is locked.
    private func publish(
        _ file: NewFile, _ ownRecord: [UInt8]?, in leaf: Int32
    ) throws(WebImageError) -> StoreResult {
        let isLocked = ownRecord != nil
        // A second round if a damaged file was in the way, a third if another process took its place.
        for _ in 0..<4 {
            let code = try publishFree(file, ownRecord, in: leaf)
            if code == 0 {
                account.add(images: 1, blocks: CacheAccount.blocks(record.length), leaf: key.leafIndex)
                return .stored
            }
            guard code == EEXIST else { throw fault(code) }
            let lock = isLocked ? nil : FolderLock(leaf)
            guard isLocked || lock != nil else { throw fault() }
            let result = try publishOver(file, ownRecord, in: leaf)
            _ = consume lock
            if let result { return result }
        }
        throw fault(EEXIST)
    }

    /// Links the file to its name if free.
    /// - Returns: 0 or an errno; `EEXIST` if the name is taken.
    private func publishFree(_ file: NewFile, _ ownRecord: [UInt8]?, in leaf: Int32) throws(WebImageError) -> Int32 {
        guard let ownRecord else { return key.withCString(isPath: false) { file.publish(as: $0) } }
        var status = stat()
        guard fstatat(leaf, key.name, &status, AT_SYMLINK_NOFOLLOW) != 0 else { return EEXIST }
        // The record first: without the image it has no effect.
        try images.records.writeOwnFile(ownRecord, name: key.name, leaf: leaf)
        return file.publish(as: key.name, isLocked: true)
    }

    /// Decides between the existing file and the new one. The leaf directory is locked.
    /// - Returns: nil if the name has become free.
    private func publishOver(
        _ file: NewFile, _ ownRecord: [UInt8]?, in leaf: Int32
    ) throws(WebImageError) -> StoreResult? {
        guard let first = try images.find(key, atLeast: record.level, isLocked: true) else { return nil }
        let isSame = record.digest != nil && first.record?.digest == record.digest && first.size == record.length
        let changesNothing = isSame && validators == nil
        if let known = first.record {
            if first.standing == .verified && (!replacing || changesNothing) { return .alreadyPresent(known) }
            if changesNothing, try images.records.replace(record, of: first, isLocked: true) {
                return .alreadyPresent(record)
            }
        }
        if let ownRecord {
            // A reader in between gets a miss, but never an image with another's record.
            unlinkat(leaf, key.name, 0)
            try images.records.writeOwnFile(ownRecord, name: key.name, leaf: leaf)
        }
        let code = file.publish(replacing: key.name, by: TemporaryFiles.name())
        guard code == 0 else { throw fault(code) }
        let change = CacheAccount.blocks(record.length) - (first.isInShard ? 0 : CacheAccount.blocks(first.size))
        account.add(images: first.isInShard ? 1 : 0, blocks: change, leaf: key.leafIndex)
        return .stored
    }

    private func fault(_ code: Int32 = errno) -> WebImageError { directory.fault("store an image", code: code) }
}

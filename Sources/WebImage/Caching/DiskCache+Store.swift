internal import CLinux
internal import Glibc
internal import Threading

extension DiskCache {
    /// What became of a stored image.
    public enum StoreResult: Sendable, Equatable {
        /// The file is there under its final name.
        case stored
        /// Another writer was first; its file is whole and good enough, and this is its record.
        case alreadyPresent(CacheRecord)
    }

    /// Publishes a verified image in one atomic step: nobody ever sees a part of it, and a kill at any instruction leaves either
    /// nothing or the whole file with its record.
    ///
    /// Where the key is taken, the first file stays if it is whole and has passed at least the same level.
    /// - Parameters:
    ///   - body: the bytes; a body that has gone to the file of `openTemporaryFile()` is published without a copy.
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
        guard !configuration.isReadOnly else { throw fault("store an image", code: EROFS) }
        var record = record
        record.length = body.count
        let validators = keepsValidators || configuration.keepsHTTPValidators ? validators : nil
        let call = calls.begin()
        defer { calls.end(call) }
        // What was there already was looked up, which notes it too.
        defer { if configuration.durability != .file { writeOut.stored() } }
        do throws(WebImageError) {
            return try store(body, key, record, validators, replacing, leaf: try openLeaf(key))
        } catch {
            // Somebody removed the directory that was kept open. EPERM: ext4's answer to an unnamed file in such a one.
            guard [ENOENT, EPERM].contains(error.underlyingCode), leaves.forget(key) else { throw error }
            return try store(body, key, record, validators, replacing, leaf: try openLeaf(key))
        }
    }

    private func store(
        _ body: ImageBody, _ key: CacheKey, _ record: CacheRecord, _ validators: HTTPValidators?, _ replacing: Bool,
        leaf: borrowing Leaf
    ) throws(WebImageError) -> StoreResult {
        var file = try fill(body, leaf: leaf.descriptor)
        defer { if let name = file.temporaryName { unlinkat(leaf.descriptor, name, 0) } }
        let encoded = record.encoded(for: key)
        let isDescribed = try describe(&file, record: encoded, validators: validators)
        if file.mode != publishedMode, fchmod(file.descriptor, publishedMode) != 0 { throw fault("store an image") }
        if configuration.durability == .file, fdatasync(file.descriptor) != 0 { throw fault("store an image") }
        // Two names cannot appear in one step, so only one process at a time publishes a pair of them into this directory.
        let pairLock = isDescribed ? nil : Self.lockFolder(leaf.descriptor)
        guard isDescribed || pairLock != nil else { throw fault("store an image") }
        let sidecar = pairLock == nil ? nil : encoded + (validators?.encoded ?? [])
        let wanted = Wanted(
            key: key, record: record, sidecar: sidecar, replacing: replacing, hasValidators: validators != nil)
        let result = try publish(wanted, file, in: leaf.descriptor)
        if configuration.durability == .file, fsync(leaf.descriptor) != 0 { throw fault("store an image") }
        _ = consume pairLock
        return result
    }

    /// Opens the directory of a key, and makes it where it is missing.
    func openLeaf(_ key: CacheKey) throws(WebImageError) -> Leaf {
        // O_PATH is enough to put a name into it; fsync wants a real descriptor.
        let isSynced = configuration.durability == .file
        if !isSynced, let kept = leaves.descriptor(key) { return Leaf(kept: kept) }
        let path = key.leaf
        let flags = isSynced ? O_RDONLY | O_DIRECTORY | O_CLOEXEC : clinux_directory_flags()
        var leaf = OpenFile(clinux_open_beneath(root, path, flags, 0))
        // More than once where what stood in its place comes back.
        for _ in 0..<3 where leaf == nil {
            guard errno == ENOENT || Self.isObstacle(errno) else { throw fault("store an image") }
            if errno != ENOENT { clearWay(to: key) }
            try makeDirectory(path)
            if isSynced {
                for part in [".", "v1", "v1/" + path.dropFirst(3).prefix(1)] {
                    let parent = OpenFile(clinux_open_beneath(root, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0))
                    guard let parent, fsync(parent.descriptor) == 0 else { throw fault("make the directory \(path)") }
                }
            }
            leaf = OpenFile(clinux_open_beneath(root, path, flags, 0))
        }
        guard let leaf else { throw fault("store an image") }
        return isSynced ? Leaf(own: leaf) : leaves.keep(leaf, key)
    }

    /// The innermost first: most often only that one is missing.
    private func makeDirectory(_ path: String) throws(WebImageError) {
        if makeFolder(path) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/") else { throw fault("make the directory \(path)") }
        try makeDirectory(String(path[..<slash]))
        guard makeFolder(path) == 0 || errno == EEXIST else { throw fault("make the directory \(path)") }
    }

    /// A file with the bytes of a body, without its final name.
    private struct Filled: ~Copyable {
        /// Nil where the descriptor is the body's own.
        var owned: OpenFile?
        let descriptor: Int32
        /// In the leaf directory; nil where the file has no name.
        var temporaryName: String?
        /// Its permissions now.
        var mode: mode_t
    }

    private func fill(_ body: ImageBody, leaf: Int32) throws(WebImageError) -> Filled {
        let abilities = current
        // Not read-only from the start where an attribute wants write permission of the file itself (xattr(7)).
        let mode = abilities.attributesOfReadOnlyFiles ? publishedMode : 0o600
        if abilities.unnamedFiles {
            if let descriptor = body.fileDescriptor, isUnnamedHere(descriptor) {
                return Filled(owned: nil, descriptor: descriptor, temporaryName: nil, mode: 0o600)
            }
            if let file = OpenFile(clinux_open_beneath(leaf, ".", clinux_tmpfile_flags(), mode)) {
                try write(body, to: file.descriptor)
                let descriptor = file.descriptor
                return Filled(owned: file, descriptor: descriptor, temporaryName: nil, mode: mode)
            }
            guard lacksUnnamedFiles(errno) else { throw fault("store an image") }
        }
        let name = Self.temporaryName()
        let flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC
        guard let file = OpenFile(clinux_open_beneath(leaf, name, flags, mode)) else { throw fault("store an image") }
        do throws(WebImageError) {
            try write(body, to: file.descriptor)
        } catch {
            unlinkat(leaf, name, 0)
            throw error
        }
        let descriptor = file.descriptor
        return Filled(owned: file, descriptor: descriptor, temporaryName: name, mode: mode)
    }

    private func write(_ body: ImageBody, to descriptor: Int32) throws(WebImageError) {
        try body.withUnsafeBytes { bytes throws(WebImageError) in
            let code = OpenFile.write(bytes, to: descriptor)
            guard code == 0 else { throw fault("store an image", code: code) }
        }
    }

    /// Whether a body's file can be given a name in this cache: it never had one, and is on the same file system.
    private func isUnnamedHere(_ descriptor: Int32) -> Bool {
        var (file, own) = (stat(), stat())
        return fstat(descriptor, &file) == 0 && fstat(root, &own) == 0 && file.st_dev == own.st_dev
            && file.st_nlink == 0
    }

    /// Attaches the record. Returns false where it has to stand in a file of its own.
    private func describe(
        _ file: inout Filled, record: [UInt8], validators: HTTPValidators?
    ) throws(WebImageError) -> Bool {
        guard current.attributes else { return false }
        let descriptor = file.descriptor
        var code = setAttribute(Self.recordAttribute, record, of: descriptor)
        if code != 0, file.mode & 0o200 == 0, lacksAttributesOfReadOnlyFiles(code) {
            file.mode = 0o600
            guard fchmod(descriptor, file.mode) == 0 else { throw fault("store an image") }
            code = setAttribute(Self.recordAttribute, record, of: descriptor)
        }
        if code == 0, let validators {
            code = setAttribute(Self.validatorsAttribute, validators.encoded, of: descriptor)
        }
        if code == 0 { return true }
        guard lacksAttributes(code) else { throw fault("store an image", code: code) }
        return false
    }

    /// What is to have a name.
    private struct Wanted {
        let key: CacheKey
        let record: CacheRecord
        /// The bytes of its record's own file, where it has to have one; the leaf directory is locked then.
        let sidecar: [UInt8]?
        /// Whether it takes the place of a whole file too.
        let replacing: Bool
        let hasValidators: Bool
    }

    private func publish(
        _ wanted: Wanted, _ file: borrowing Filled, in leaf: Int32
    ) throws(WebImageError) -> StoreResult {
        let (key, name, size) = (wanted.key, wanted.key.name, CacheAccount.blocks(wanted.record.length))
        // A second round where a damaged file was in the way, a third where another process took its place meanwhile.
        for _ in 0..<4 {
            if let sidecar = wanted.sidecar {
                // The record first: without the image it means nothing.
                var status = stat()
                if fstatat(leaf, name, &status, AT_SYMLINK_NOFOLLOW) != 0 {
                    try writeSidecar(sidecar, name: name, leaf: leaf)
                    if link(file, as: name, in: leaf, isLocked: true) == 0 {
                        account?.add(images: 1, blocks: size, leaf: key.leafIndex)
                        return .stored
                    }
                } else {
                    errno = EEXIST
                }
            } else if link(file, as: name, in: leaf) == 0 {
                account?.add(images: 1, blocks: size, leaf: key.leafIndex)
                return .stored
            }
            guard errno == EEXIST else { throw fault("store an image") }
            let lock = wanted.sidecar == nil ? Self.lockFolder(leaf) : nil
            guard wanted.sidecar != nil || lock != nil else { throw fault("store an image") }
            let result = try publishOver(wanted, file, in: leaf)
            _ = consume lock
            if let result { return result }
        }
        throw fault("store an image", code: EEXIST)
    }

    /// Decides between the file that has the name and the new one. The leaf directory is locked.
    /// - Returns: nil where the name is free again.
    private func publishOver(
        _ wanted: Wanted, _ file: borrowing Filled, in leaf: Int32
    ) throws(WebImageError) -> StoreResult? {
        let (record, name) = (wanted.record, wanted.key.name)
        guard let first = try lookup(wanted.key, atLeast: record.level, isLocked: true) else { return nil }
        let isSame = record.digest != nil && first.record?.digest == record.digest && first.size == record.length
        let changesNothing = isSame && !wanted.hasValidators
        if let known = first.record {
            if first.standing == .verified && (!wanted.replacing || changesNothing) { return .alreadyPresent(known) }
            if changesNothing, try rewrite(record, of: first, isLocked: true) { return .alreadyPresent(record) }
        }
        if let sidecar = wanted.sidecar {
            // A reader in between finds nothing, which is a miss; never an image with the record of another.
            unlinkat(leaf, name, 0)
            try writeSidecar(sidecar, name: name, leaf: leaf)
        }
        guard replace(file, as: name, in: leaf) == 0 else { throw fault("store an image") }
        let change = CacheAccount.blocks(record.length) - CacheAccount.blocks(first.size)
        account?.add(images: 0, blocks: change, leaf: wanted.key.leafIndex)
        return .stored
    }

    /// Gives the file its name, where that is free: the one step that makes it visible.
    ///
    /// * `isLocked`: whether the leaf directory is locked.
    private func link(
        _ file: borrowing Filled, as name: String, in leaf: Int32, isLocked: Bool = false
    ) -> Int32 {
        guard let temporary = file.temporaryName else { return clinux_link_fd(file.descriptor, leaf, name) }
        return Self.nameOnce(temporary, as: name, in: leaf, isLocked: isLocked)
    }

    /// Gives the file its name, in place of what has it.
    private func replace(_ file: borrowing Filled, as name: String, in leaf: Int32) -> Int32 {
        if let temporary = file.temporaryName { return renameat(leaf, temporary, leaf, name) }
        let temporary = Self.temporaryName()
        guard clinux_link_fd(file.descriptor, leaf, temporary) == 0 else { return -1 }
        if renameat(leaf, temporary, leaf, name) == 0 { return 0 }
        let code = errno
        unlinkat(leaf, temporary, 0)
        errno = code
        return -1
    }

    /// Writes a record's own file, whole or not at all.
    func writeSidecar(_ bytes: [UInt8], name: String, leaf: Int32) throws(WebImageError) {
        let temporary = Self.temporaryName()
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        guard let file = OpenFile(clinux_open_beneath(leaf, temporary, flags, publishedMode)) else {
            throw fault("write a record")
        }
        var code = bytes.withUnsafeBytes { OpenFile.write($0, to: file.descriptor) }
        if code == 0, configuration.durability == .file, fdatasync(file.descriptor) != 0 { code = errno }
        if code == 0, renameat(leaf, temporary, leaf, name + Self.sidecarSuffix) != 0 {
            code = errno
            // A directory of that name; a link or a pipe the rename replaces.
            if code == EISDIR, let bad = openBad(),
                renameat(leaf, name + Self.sidecarSuffix, bad.descriptor, Self.strayName()) == 0,
                renameat(leaf, temporary, leaf, name + Self.sidecarSuffix) == 0
            {
                code = 0
            }
        }
        guard code == 0 else {
            unlinkat(leaf, temporary, 0)
            throw fault("write a record", code: code)
        }
    }
}

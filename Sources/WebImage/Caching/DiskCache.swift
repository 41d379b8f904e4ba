internal import CLinux
internal import Glibc
internal import Threading

/// A directory of verified images shared by any number of processes. The file system is the index: there is no server, no database, and
/// nothing to repair. `docs/CACHE.md` describes the layout and what a crash leaves.
///
/// All methods may block on the disk; call them from a thread that may.
public final class DiskCache: Sendable {
    /// Its settings.
    public let configuration: Configuration
    /// Warnings about the directory: it is world-writable.
    public let warnings: [String]
    /// The images in it.
    public let images: ImageFiles
    /// Number and disk usage of the images.
    public let account: CacheAccount
    /// Checks and repairs the cache.
    public let audit: CacheAudit
    package let sweep: CacheSweep
    package let temporaryFiles: TemporaryFiles
    package let folder: CacheDirectory

    private let tiers: [CacheTier]
    private let writeOut = WriteOut()

    /// Opens a cache directory, creating it and its contents if missing.
    /// - Throws: `localFault` with errno and a sentence that names the directory.
    public init(directory: String, configuration: Configuration = Configuration()) throws(WebImageError) {
        self.configuration = configuration
        folder = try CacheDirectory(directory, configuration)
        let trust = try CacheTrust(of: folder)
        warnings = trust.isWorldWritable ? [Self.warning(of: folder)] : []
        var tiers: [CacheTier] = []
        for directory in configuration.readOnlyDirectories {
            tiers.append(try CacheTier(directory, maxUnverified: configuration.maxUnverifiedSize))
        }
        self.tiers = tiers
        account = CacheAccount(folder)
        let quarantine = Quarantine(folder, account)
        let leaves = LeafDirectories(folder, account, quarantine, isSynced: configuration.durability == .file)
        images = ImageFiles(folder, leaves, account, quarantine, writeOut, trust, configuration)
        audit = CacheAudit(folder, leaves, account, quarantine, images)
        temporaryFiles = TemporaryFiles(folder, leaves)
        sweep = CacheSweep(folder, leaves, account, quarantine, temporaryFiles, configuration.expireType)
        let isNew = configuration.isReadOnly ? false : try Self.lay(in: folder, quarantine)
        account.refresh()
        // The counted images are gone.
        if isNew { try account.recount() }
    }

    /// The cache directory as given.
    public var directory: String { folder.path }

    // MARK: Opening

    private static func warning(of folder: CacheDirectory) -> String {
        "everybody on this machine can write to the cache directory \(folder.path): images that other users put there are verified at each hit; chmod o-w keeps others out"
    }

    /// Creates missing parts of a cache.
    /// - Returns: whether an obstacle in place of the directory of all images was moved aside.
    /// - Throws: `localFault`; also if a symbolic link is in place of the cache's own folder.
    private static func lay(in folder: CacheDirectory, _ quarantine: Quarantine) throws(WebImageError) -> Bool {
        for name in ["v1", ".prefetch", ".prefetch/locks"] {
            guard folder.makeFolder(name) == 0 || errno == EEXIST else { throw folder.fault("make \(name)") }
        }
        let isObstructed =
            folder.folder("v1") == nil && Quarantine.isObstacle(errno)
            && quarantine.moveObstacle("v1", of: folder.descriptor)
        if isObstructed {
            guard folder.makeFolder("v1") == 0 || errno == EEXIST else { throw folder.fault("make v1") }
        }
        // A full disk must not prevent opening a cache.
        var words = SystemRandomNumberGenerator()
        let id = Digest.hex((0..<16).map { _ in words.next() as UInt8 })
        _ = makeText(CacheDirectory.idPath, "\(id)\n", mode: 0o444, in: folder)
        // https://bford.info/cachedir/: backup programs skip a directory with this file.
        let tag = "CACHEDIR.TAG"
        let text = "Signature: 8a477f597d28d172789f06886806bc55\n# This directory is a cache of prefetch.\n"
        let code = makeText(tag, text, mode: 0o666, in: folder)
        guard code == 0 else { throw folder.fault("make \(tag)", code: code) }
        return isObstructed
    }

    private static func makeText(_ path: String, _ text: String, mode: mode_t, in folder: CacheDirectory) -> Int32 {
        var status = stat()
        if fstatat(folder.descriptor, path, &status, AT_SYMLINK_NOFOLLOW) == 0 { return 0 }
        return Array(text.utf8).withUnsafeBytes { folder.makeOnce(path, $0, mode: mode, isSynced: true) }
    }

    // MARK: Finding

    /// Finds an image by its text key: here, otherwise in the read-only directories in order.
    ///
    /// If an image from one of those needs verification, it does so each time, because nothing is recorded there.
    /// - Returns: nil if there is none.
    /// - Throws: as ``ImageFiles/find(_:atLeast:)``, also for the read-only directories.
    public func find(
        forKey key: String, atLeast level: ValidationLevel = .decode
    ) throws(WebImageError) -> CacheEntry? {
        try find(forKey: key, named: CacheKey(key), atLeast: level)
    }

    /// * `name`: that of `key`.
    func find(
        forKey key: String, named name: CacheKey, atLeast level: ValidationLevel
    ) throws(WebImageError) -> CacheEntry? {
        if let entry = try images.find(name, atLeast: level) { return entry }
        for tier in tiers {
            if let entry = try tier.entry(forKey: key, atLeast: level) { return entry }
        }
        return nil
    }

    /// Path of a key's image, complete by its record or without one, here or in a read-only directory; nil if there is none.
    public func existingPath(forKey key: String) -> String? {
        // Not a lookup: it must not update the access date.
        if let entry = try? images.open(CacheKey(key), level: .none) {
            if entry.isWhole { return entry.path }
            images.moveAside(entry)
        }
        for tier in tiers {
            if let entry = try? tier.entry(forKey: key, atLeast: .none) { return entry.path }
        }
        return nil
    }

    // MARK: Syncing

    /// Makes everything stored so far survive a power cut: one syncfs(2) for the file system. Does nothing unless the durability is
    /// `batch`.
    /// - Throws: `localFault`.
    public func sync() throws(WebImageError) {
        guard configuration.durability == .batch else { return }
        try syncOwn()
    }

    /// Makes every image stored or found here survive a power cut, including unsynced ones published by other processes: one syncfs(2), or
    /// none if all of them are known to be on disk. Does nothing if the durability is `none`.
    /// - Returns: whether anything was synced.
    @discardableResult
    package func syncPending() throws(WebImageError) -> Bool {
        guard configuration.durability != .none else { return false }
        let call = folder.calls.begin()
        defer { folder.calls.end(call) }
        var hasWritten = writeOut.isPending(in: folder.descriptor)
        if hasWritten { try syncOwn() }
        for tier in tiers where try tier.syncPending() { hasWritten = true }
        return hasWritten
    }

    private func syncOwn() throws(WebImageError) {
        let call = folder.calls.begin()
        defer { folder.calls.end(call) }
        let code = writeOut.sync(folder.descriptor, isReadOnly: configuration.isReadOnly)
        guard code == 0 else { throw folder.fault("write out", code: code) }
    }

    // MARK: State

    /// Probes the directory and the features of its file system; leaves nothing behind.
    /// - Throws: `localFault` if nothing can be written.
    public func condition() throws(WebImageError) -> CacheCondition { try CacheCondition(of: self) }
}

internal import CLinux
internal import Glibc
internal import Threading

/// A directory of verified images that any number of processes share. The file system is the index: there is no server, no
/// database and nothing to repair. `docs/CACHE.md` has the layout and what a crash leaves.
///
/// All methods may block on the disk; call them from a thread that may.
public final class DiskCache: Sendable {
    /// How it was opened.
    public let configuration: Configuration
    /// Sentences about the directory that a person should read: it is open to everyone.
    public let warnings: [String]
    /// The images in it.
    public let images: ImageFiles
    /// How much there is.
    public let account: CacheAccount
    /// The check of all of it.
    public let audit: CacheAudit
    /// What removes old images.
    package let sweep: CacheSweep
    /// Bodies on their way.
    package let temporaryFiles: TemporaryFiles
    /// The opened directory.
    package let folder: CacheDirectory

    /// What is looked up behind it.
    private let tiers: [CacheTier]
    /// What of it is known to be on the disk.
    private let writeOut = WriteOut()

    /// Opens a cache directory; makes it, and what belongs into it, where it is missing.
    /// - Throws: `localFault` with errno and a sentence that names the directory.
    public init(directory: String, configuration: Configuration = Configuration()) throws(WebImageError) {
        self.configuration = configuration
        folder = try CacheDirectory(directory, configuration)
        warnings = try Self.warnings(of: folder, isStrict: configuration.isStrict)
        var tiers: [CacheTier] = []
        for directory in configuration.readOnlyDirectories {
            tiers.append(try CacheTier(directory, mostUnproved: configuration.maxUnprovedSize))
        }
        self.tiers = tiers
        account = CacheAccount(folder)
        let quarantine = Quarantine(folder, account)
        let leaves = LeafDirectories(folder, account, quarantine, isSynced: configuration.durability == .file)
        images = ImageFiles(folder, leaves, account, quarantine, writeOut, configuration)
        audit = CacheAudit(folder, leaves, account, quarantine, images)
        temporaryFiles = TemporaryFiles(folder, leaves)
        sweep = CacheSweep(folder, leaves, account, quarantine, temporaryFiles, configuration.expireType)
        let isNew = configuration.isReadOnly ? false : try Self.lay(in: folder, quarantine)
        account.refresh()
        // The images that were counted are not there any more.
        if isNew { try account.recount() }
    }

    /// The cache directory as it was named.
    public var directory: String { folder.path }

    // MARK: Opening

    private static func warnings(of folder: CacheDirectory, isStrict: Bool) throws(WebImageError) -> [String] {
        var status = stat()
        guard fstat(folder.descriptor, &status) == 0 else {
            throw .fileFault("open the cache directory \(folder.path)")
        }
        guard status.st_mode & 0o002 != 0 else { return [] }
        let sentence = "everybody on this machine can write to the cache directory \(folder.path)"
        if isStrict {
            throw WebImageError(.invalidConfiguration, "\(sentence): chmod o-w it, or do not ask for a strict cache")
        }
        return ["\(sentence) and so put files there that count as verified; chmod o-w takes that away"]
    }

    /// Makes what belongs into a cache, where it is missing.
    /// - Returns: whether what stood in the place of the directory of all images was moved aside.
    /// - Throws: `localFault`; also where a symbolic link stands in the place of the cache's own folder.
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
        // A full disk is no reason not to open a cache.
        var words = SystemRandomNumberGenerator()
        let id = Digest.hex((0..<16).map { _ in words.next() as UInt8 })
        _ = makeText(CacheDirectory.idPath, "\(id)\n", mode: 0o444, in: folder)
        // https://bford.info/cachedir/: backup programs leave a directory with this file out.
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

    // MARK: Finding behind it

    /// Looks an image up by its key as a text: here, and where there is none in the read-only directories, one after the other.
    ///
    /// An image from one of those that needs verification needs it each time, because nothing is written down there.
    /// - Returns: nil where there is none.
    /// - Throws: as ``ImageFiles/find(_:atLeast:)``, also of the read-only directories.
    public func find(
        forKey key: String, atLeast level: ValidationLevel = .decode
    ) throws(WebImageError) -> CacheEntry? {
        if let entry = try images.find(CacheKey(key), atLeast: level) { return entry }
        for tier in tiers {
            if let entry = try tier.entry(forKey: key, atLeast: level) { return entry }
        }
        return nil
    }

    /// Where the image of a key is, whole by its record or without one, here or in a read-only directory; nil where there is none.
    public func existingPath(forKey key: String) -> String? {
        // Not a lookup: to ask is no use of it.
        if let entry = try? images.open(CacheKey(key), level: .none) {
            if entry.isWhole { return entry.path }
            images.moveAside(entry)
        }
        for tier in tiers {
            if let entry = try? tier.entry(forKey: key, atLeast: .none) { return entry.path }
        }
        return nil
    }

    // MARK: Writing out

    /// Makes everything stored until now survive a power cut: one syncfs(2) for the whole file system. Does nothing unless the
    /// durability is `batch`.
    /// - Throws: `localFault`.
    public func sync() throws(WebImageError) {
        guard configuration.durability == .batch else { return }
        try syncOwn()
    }

    /// Makes every image that was stored or found here survive a power cut, also one that another process published and nobody has
    /// written out yet: one syncfs(2) where there is such an image, none where all of them are known to be on the disk. Does nothing
    /// where the durability is `none`.
    /// - Returns: whether it wrote anything out.
    /// - Throws: `localFault`.
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

    // MARK: Telling

    /// Looks what the directory is like, and tries what its file system can do; leaves nothing behind.
    /// - Throws: `localFault` where nothing can be written.
    public func condition() throws(WebImageError) -> CacheCondition { try CacheCondition(of: self) }
}

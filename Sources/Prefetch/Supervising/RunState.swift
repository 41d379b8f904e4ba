internal import Glibc
package import WebImage

/// What this user's runs keep of one cache: a folder of the state folder, named by the identity of the cache and private to this user (0700).
/// It has the data of the private Redis (`redis`), copies of lists (`lists`), locks of runs, and where the cache was last seen (`place`).
///
/// Nothing of it is in the cache folder, which may come from anywhere: a cache has images, and nothing that is executed or is a queue.
package struct RunState: Sendable {
    /// The cache folder: absolute, without symbolic links.
    package let cache: String
    let folder: PinnedFolder

    private static let placeName = "place"

    /// The state of a cache.
    ///
    /// A cache that is a copy of another one, which is still in its place, gets an identity of its own first; one that was moved goes on.
    /// - Parameters:
    ///   - cache: the folder; created if missing.
    ///   - state: where states are.
    ///   - notice: called with a message where the cache gets another identity.
    /// - Returns: its state.
    /// - Throws: `cacheUnavailable` if the cache or the state cannot be created, or something in it is not private to this user;
    ///   `inputOutput`.
    package static func open(
        _ cache: String, in state: StateFolder, notice: (String) -> Void = { _ in }
    ) throws(PrefetchError) -> RunState {
        if let folder = CacheDirectory.existing(cache), folder.id != nil {
            return try open(folder, in: state, notice: notice)
        }
        let disk: DiskCache
        do throws(WebImageError) { disk = try DiskCache(directory: cache) } catch {
            throw PrefetchError(
                .cacheUnavailable, error.message, hint: "choose a folder that this user may write: --cache DIR")
        }
        return try open(disk.folder, in: state, notice: notice)
    }

    /// The state of a cache that is open.
    /// - Throws: as for its path.
    package static func open(
        _ cache: CacheDirectory, in state: StateFolder, notice: (String) -> Void = { _ in }
    ) throws(PrefetchError) -> RunState {
        let root = try state.open()
        if let found = try find(cache, root, makes: true) { return found }
        try renew(cache, root, notice)
        guard let renewed = try find(cache, root, makes: true) else {
            throw PrefetchError(
                .cacheUnavailable, "\(cache.path) has no identity of its own, and cannot be given one",
                hint: "choose a folder that this user may write: --cache DIR")
        }
        return renewed
    }

    /// The state of a cache, where there is one.
    /// - Returns: nil where this user has no state of it, also for a copy of a cache that has one.
    /// - Throws: as ``open(_:in:notice:)``.
    package static func existing(_ cache: String, in state: StateFolder) throws(PrefetchError) -> RunState? {
        guard let root = try state.existing(), let folder = CacheDirectory.existing(cache) else { return nil }
        return try find(folder, root, makes: false)
    }

    /// Whether runs have used it.
    package var isUsed: Bool { (try? folder.folder(PrivateRedisFolder.name)) != nil }

    /// Whether runs of this user have used a cache.
    package static func exists(_ cache: String, in state: StateFolder) -> Bool {
        (try? existing(cache, in: state))?.isUsed == true
    }

    /// The folder for copies of lists, created if missing.
    package func lists() throws(PrefetchError) -> String { try subfolder("lists").path }

    /// The folder for the lines of shards that are healed, created if missing.
    package func healing() throws(PrefetchError) -> String { try subfolder("heal").path }

    func redis() throws(PrefetchError) -> PrivateRedisFolder {
        try PrivateRedisFolder(cache: cache, data: subfolder(PrivateRedisFolder.name))
    }

    private func subfolder(_ name: String) throws(PrefetchError) -> PinnedFolder {
        try folder.make(name, mode: 0o700)
        guard let found = try folder.folder(name) else { throw .file("open", "\(folder.path)/\(name)") }
        if let fault = PinnedFolder.fault(of: found.status, isFolder: true) { throw .notOurs(found.path, fault) }
        return found
    }

    // MARK: Identity

    /// Whether a name is that of a state.
    static func isIdentity(_ name: String) -> Bool {
        name.utf8.count == 32
            && name.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    /// Where the cache of a state was last seen.
    static func place(in folder: PinnedFolder) -> CachePlace? { CachePlace(folder.read(placeName)) }

    /// - Returns: nil if there is none; with `makes` only where the cache is a copy, or has no identity.
    private static func find(
        _ cache: CacheDirectory, _ root: PinnedFolder, makes: Bool
    ) throws(PrefetchError) -> RunState? {
        guard let id = cache.id, let now = CachePlace(of: cache.path) else { return nil }
        if makes { try root.make(id, mode: 0o700) }
        guard let folder = try root.folder(id) else { return nil }
        if let fault = PinnedFolder.fault(of: folder.status, isFolder: true) { throw .notOurs(folder.path, fault) }
        let known = place(in: folder)
        if let known, known.path != now.path, !known.isSameFolder(as: now),
            CacheDirectory.existing(known.path)?.id == id
        {
            return nil
        }
        if known != now { try folder.write(now.text, to: placeName) }
        return RunState(cache: now.path, folder: folder)
    }

    /// Gives a copy another identity, once where several processes want to.
    private static func renew(
        _ cache: CacheDirectory, _ root: PinnedFolder, _ notice: (String) -> Void
    ) throws(PrefetchError) {
        let lock = try LockFile.wait("identities.lock", in: root)
        defer { lock.release() }
        guard let id = cache.id,
            let known = try root.folder(id).flatMap({ CachePlace($0.read(placeName)) }),
            try find(cache, root, makes: false) == nil
        else { return }
        let control = try PinnedFolder(path: cache.path).folder(".prefetch")
        var random = SystemRandomNumberGenerator()
        try control?.write(
            Digest.hex((0..<16).map { _ in random.next() as UInt8 }) + "\n", to: "id", mode: 0o444, isSynced: true)
        notice("\(cache.path) is a copy of \(known.path): it has an identity of its own now, and its runs begin anew")
    }
}

/// Where a cache is: two paths with the same device and inode are one folder.
struct CachePlace: Equatable {
    let path: String
    private let device: UInt64
    private let inode: UInt64

    /// Nil if there is no such folder.
    init?(of cache: String) {
        var status = stat()
        guard let resolved = realpath(cache.isEmpty ? "." : cache, nil) else { return nil }
        defer { free(resolved) }
        path = String(cString: resolved)
        guard stat(path, &status) == 0 else { return nil }
        (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
    }

    /// Parses ``text``; nil if it is no such text.
    init?(_ text: [UInt8]) {
        let lines = text.split(separator: UInt8(ascii: "\n"), maxSplits: 1)
        guard lines.count == 2 else { return nil }
        let numbers = String(decoding: lines[0], as: UTF8.self).split(atByte: " ").compactMap { UInt64($0) }
        guard numbers.count == 2 else { return nil }
        (device, inode) = (numbers[0], numbers[1])
        path = String(decoding: lines[1].dropLast(), as: UTF8.self)
    }

    /// Device and inode, then the path, which may have line ends.
    var text: String { "\(device) \(inode)\n\(path)\n" }

    func isSameFolder(as other: CachePlace) -> Bool { device == other.device && inode == other.inode }
}

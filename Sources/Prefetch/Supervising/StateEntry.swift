internal import Glibc
internal import WebImage

/// The state that a user's runs keep of one cache, as it is listed and removed.
package struct StateEntry: Sendable {
    /// The identity of the cache.
    package let id: String
    /// Where the cache was last seen; empty if that is not known.
    package let cache: String
    /// Bytes.
    package let size: Int
    /// Whether there is no cache with this identity in its place: it is gone, or on a disk that is not mounted.
    package let isOrphan: Bool
}

extension StateFolder {
    /// The states of all caches, by their paths.
    /// - Throws: `cacheUnavailable` if the folder is not private to this user.
    package func entries() throws(PrefetchError) -> [StateEntry] {
        guard let root = try existing() else { return [] }
        var entries: [StateEntry] = []
        for id in try root.names() where RunState.isIdentity(id) {
            guard let folder = try? root.folder(id) else { continue }
            let place = RunState.place(in: folder)
            entries.append(
                StateEntry(
                    id: id, cache: place?.path ?? "", size: Self.size(folder),
                    isOrphan: place.map { CacheDirectory.existing($0.path)?.id != id } ?? true))
        }
        return entries.sorted { ($0.cache, $0.id) < ($1.cache, $1.id) }
    }

    /// Removes a state, with the results of its batches. The cache is not touched.
    /// - Returns: whether it is gone; false while a process uses its server.
    /// - Throws: `cacheUnavailable` or `inputOutput` if something cannot be removed.
    package func remove(_ entry: StateEntry) throws(PrefetchError) -> Bool {
        guard let root = try existing(), let folder = try root.folder(entry.id) else { return true }
        var lock: LockFile?
        if let redis = try folder.folder(PrivateRedisFolder.name) {
            lock = try LockFile.take(PrivateRedisFolder.lockName, in: redis)
            guard lock != nil else { return false }
        }
        defer { lock?.release() }
        try Self.empty(folder)
        guard unlinkat(root.descriptor, entry.id, Int32(AT_REMOVEDIR)) == 0 else {
            throw .file("remove", folder.path)
        }
        return true
    }

    private static func empty(_ folder: PinnedFolder) throws(PrefetchError) {
        for name in try folder.names() {
            var status = stat()
            guard fstatat(folder.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            let isFolder = status.st_mode & S_IFMT == S_IFDIR
            if isFolder, let inner = try folder.folder(name) { try empty(inner) }
            guard unlinkat(folder.descriptor, name, isFolder ? Int32(AT_REMOVEDIR) : 0) == 0 else {
                throw .file("remove", "\(folder.path)/\(name)")
            }
        }
    }

    private static func size(_ folder: PinnedFolder) -> Int {
        var sum = 0
        for name in (try? folder.names()) ?? [] {
            var status = stat()
            guard fstatat(folder.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            sum += Int(status.st_blocks) * 512
            if status.st_mode & S_IFMT == S_IFDIR, let inner = try? folder.folder(name) { sum += size(inner) }
        }
        return sum
    }
}

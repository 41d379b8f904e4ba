internal import Glibc

/// A read-only directory consulted after a cache's own (SDImageCache's `addReadOnlyCachePath:`): one of our caches, or one of SDWebImage.
enum CacheTier: Sendable {
    /// Records say what its files have passed.
    case ours(DiskCache)
    /// Files without records: each is verified each time.
    case sdWebImage(SDWebImageFolder, most: Int)

    /// Opens a directory; one with `v1` in it is one of our caches.
    /// * `maxUnverified`: longer files without a record are ignored.
    /// - Throws: `localFault` with a sentence that names the directory.
    init(_ directory: String, maxUnverified: Int) throws(WebImageError) {
        var status = stat()
        if fstatat(AT_FDCWD, "\(directory)/v1", &status, 0) == 0, status.st_mode & S_IFMT == S_IFDIR {
            var configuration = DiskCache.Configuration(isReadOnly: true)
            configuration.isTier = true
            configuration.maxUnverifiedSize = maxUnverified
            self = .ours(try DiskCache(directory: directory, configuration: configuration))
        } else {
            self = .sdWebImage(try SDWebImageFolder(path: directory), most: maxUnverified)
        }
    }

    /// The image of a key if it is complete; nil if there is none, or it is not a file.
    func entry(forKey key: String, atLeast level: ValidationLevel) throws(WebImageError) -> CacheEntry? {
        switch self {
        case .ours(let disk): return try disk.images.find(CacheKey(key), atLeast: level)
        case .sdWebImage(let folder, let most):
            guard let entry = try folder.entry(forKey: key, level: level, most: most), entry.isWhole else { return nil }
            folder.writeOut.found(changedAt: entry.changedAt)
            return entry
        }
    }

    /// Syncs found images that may not be on disk yet; false if there is none.
    func syncPending() throws(WebImageError) -> Bool {
        switch self {
        case .ours(let disk): try disk.syncPending()
        case .sdWebImage(let folder, _): try folder.syncPending()
        }
    }
}

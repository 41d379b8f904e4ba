internal import Glibc

/// A directory that is looked up behind a cache's own (SDImageCache's `addReadOnlyCachePath:`), and in which nothing is ever changed: a
/// cache of ours, or one of SDWebImage.
enum CacheTier: Sendable {
    /// Its records say what its files have passed.
    case ours(DiskCache)
    /// Nobody vouches for its files: each is verified each time.
    case sdWebImage(SDWebImageFolder, most: Int)

    /// Opens one; a folder with `v1` in it is one of ours.
    ///
    /// * `mostUnproved`: a longer file of which no record vouches is none.
    /// - Throws: `localFault` with a sentence that names the directory.
    init(_ directory: String, mostUnproved: Int) throws(WebImageError) {
        var status = stat()
        if fstatat(AT_FDCWD, "\(directory)/v1", &status, 0) == 0, status.st_mode & S_IFMT == S_IFDIR {
            var configuration = DiskCache.Configuration(isReadOnly: true)
            configuration.isTier = true
            configuration.maxUnprovedSize = mostUnproved
            self = .ours(try DiskCache(directory: directory, configuration: configuration))
        } else {
            self = .sdWebImage(try SDWebImageFolder(path: directory), most: mostUnproved)
        }
    }

    /// The image of a key where it is whole; nil where there is none, or something that is no file.
    /// - Throws: `localFault`.
    func entry(forKey key: String, atLeast level: ValidationLevel) throws(WebImageError) -> CacheEntry? {
        switch self {
        case .ours(let disk): return try disk.images.find(CacheKey(key), atLeast: level)
        case .sdWebImage(let folder, let most):
            guard let entry = try folder.entry(forKey: key, level: level, most: most), entry.isWhole else { return nil }
            folder.writeOut.found(changedAt: entry.changedAt)
            return entry
        }
    }

    /// Writes out what was found here and may not be on its disk yet; false where there is no such image.
    /// - Throws: `localFault`.
    func syncPending() throws(WebImageError) -> Bool {
        switch self {
        case .ours(let disk): try disk.syncPending()
        case .sdWebImage(let folder, _): try folder.syncPending()
        }
    }
}

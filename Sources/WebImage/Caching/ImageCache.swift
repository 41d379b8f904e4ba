/// The cache of an image manager: the disk, the keys, and the rule that an image is transferred once.
public final class ImageCache: Sendable {
    /// Makes a key of an absolute URL; nil leaves the URL as it is.
    public typealias KeyFilter = @Sendable (_ url: String) -> String?

    /// The images on disk.
    public let disk: DiskCache
    /// What makes keys of URLs (SDWebImageManager's `cacheKeyFilter`); nil (default): the URL is the key, byte for byte.
    public let cacheKeyFilter: KeyFilter?
    /// One transfer per image over all processes.
    package let transfers: TransferLock

    /// A cache in a directory of its own.
    /// - Throws: `localFault` with a sentence that names the directory.
    public init(
        directory: String, configuration: DiskCache.Configuration = DiskCache.Configuration(),
        cacheKeyFilter: KeyFilter? = nil
    ) throws(WebImageError) {
        disk = try DiskCache(directory: directory, configuration: configuration)
        transfers = try TransferLock(disk)
        self.cacheKeyFilter = cacheKeyFilter
    }

    /// The key of an image (SDWebImageManager's `cacheKeyForURL:`).
    public func key(for url: String) -> String { cacheKeyFilter?(url) ?? url }

    /// The name of an image in the cache.
    public func cacheKey(for url: String) -> CacheKey { CacheKey(key(for: url)) }
}

internal import Threading

/// The cache of an image manager (SDImageCache): memory before disk, the keys, and the rule that an image is transferred once.
///
/// Whatever touches the disk is asynchronous and runs on threads of the cache's own, which start with the first such call.
public final class ImageCache: Sendable {
    /// Makes a key of an absolute URL; nil leaves the URL as it is.
    public typealias KeyFilter = @Sendable (_ url: String) -> String?

    /// The images on disk.
    public let disk: DiskCache
    /// The images in memory; nil where `shouldCacheImagesInMemory` is false.
    public let memory: MemoryCache?
    /// How it works.
    public let configuration: Configuration
    /// What makes keys of URLs (SDWebImageManager's `cacheKeyFilter`); nil (default): the URL is the key, byte for byte.
    public let cacheKeyFilter: KeyFilter?
    /// One transfer per image over all processes.
    package let transfers: TransferLock
    private let threads = Locked<ThreadPool?>(nil)

    /// A cache in a directory of its own.
    /// - Throws: `localFault` with a sentence that names the directory.
    public init(
        directory: String, configuration: Configuration = Configuration(), cacheKeyFilter: KeyFilter? = nil
    ) throws(WebImageError) {
        disk = try DiskCache(directory: directory, configuration: configuration.disk)
        transfers = try TransferLock(disk, patience: configuration.transferPatience)
        memory =
            configuration.shouldCacheImagesInMemory
            ? configuration.memoryStore.map { MemoryCache($0) }
                ?? MemoryCache(
                    maxMemoryCost: configuration.maxMemoryCost, maxMemoryCountLimit: configuration.maxMemoryCountLimit)
            : nil
        self.configuration = configuration
        self.cacheKeyFilter = cacheKeyFilter
    }

    /// The key of an image (SDWebImageManager's `cacheKeyForURL:`).
    public func key(for url: String) -> String { cacheKeyFilter?(url) ?? url }

    /// The name of an image in the cache.
    public func cacheKey(for url: String) -> CacheKey { CacheKey(key(for: url)) }

    /// Threads for file calls and verification, made when they are first needed: most caches belong to a manager, which has its own.
    var pool: ThreadPool {
        threads.withLock { threads in
            if let threads { return threads }
            let made = ThreadPool(threads: max(2, Processors.count), name: "cache")
            threads = made
            return made
        }
    }
}

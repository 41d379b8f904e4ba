import Origin
import TestSupport
import Testing

@testable import WebImage

/// SDWebImage 5.21's tests of SDImageCachesManager, which stand among those of SDImageCache.
@Suite("Ported SDImageCacheTests, caches manager", .timeLimit(.minutes(5)))
struct PortedCachesManagerTests {
    private let folder = TemporaryDirectory()
    private let key = "TestImageKey.jpg"
    private let jpeg = GeneratedImage.jpeg(seed: 1, width: 50, height: 40)
    private let png = GeneratedImage.png(seed: 2, width: 30, height: 20)

    /// `cache1` has the lowest priority, `cache2` the highest.
    private func caches() throws -> (cache1: ImageCache, cache2: ImageCache) {
        (try ImageCache(directory: folder.path("cache1")), try ImageCache(directory: folder.path("cache2")))
    }

    private func manager(
        _ policy: ImageCachesManager.OperationPolicy
    ) throws -> (manager: ImageCachesManager, cache1: ImageCache, cache2: ImageCache) {
        let (cache1, cache2) = try caches()
        return (ImageCachesManager([cache1, cache2], configuration: .init(all: policy)), cache1, cache2)
    }

    /// The shared manager of the original has the shared cache and nothing else.
    private func single() throws -> (manager: ImageCachesManager, cache: ImageCache) {
        let cache = try ImageCache(directory: folder.path("cache"))
        return (ImageCachesManager([cache]), cache)
    }

    @Test("SDImageCacheTests 50 SDImageCacheQueryOp")
    func query() async throws {
        let (manager, cache) = try single()
        try await cache.store(jpeg, forKey: key, toDisk: false)
        let found = try #require(try await manager.queryImage(forKey: key))
        #expect(found.image.bytes == jpeg && found.cacheType == .memory)
        #expect(try await manager.queryImage(forKey: "another") == nil)
    }

    @Test("SDImageCacheTests 51 SDImageCacheStoreOp")
    func store() async throws {
        let (manager, cache) = try single()
        try await manager.store(jpeg, forKey: key)
        #expect(cache.imageFromMemoryCache(forKey: key)?.bytes == jpeg)
        #expect(await cache.diskImageExists(forKey: key))
        try await manager.storeImageDataToDisk(png, forKey: key)
        #expect(cache.imageFromMemoryCache(forKey: key) == nil)
        #expect(try await cache.imageFromDiskCache(forKey: key)?.bytes == png)
    }

    /// The original removes from the disk and leaves the memory. A cache of ours forgets what it has removed; it can do the opposite.
    @Test("SDImageCacheTests 52 SDImageCacheRemoveOp")
    func remove() async throws {
        let (manager, cache) = try single()
        try await manager.store(jpeg, forKey: key)
        try await manager.removeImage(forKey: key, fromDisk: false)
        #expect(cache.imageFromMemoryCache(forKey: key) == nil)
        #expect(await cache.diskImageExists(forKey: key))
        try await manager.removeImage(forKey: key)
        #expect(await cache.containsImage(forKey: key) == .none)
    }

    @Test("SDImageCacheTests 53 SDImageCacheContainsOp")
    func contains() async throws {
        let (manager, cache) = try single()
        #expect(await manager.containsImage(forKey: key) == .none)
        try await manager.store(jpeg, forKey: key)
        #expect(await manager.containsImage(forKey: key) == .memory)
        cache.clearMemory()
        #expect(await manager.containsImage(forKey: key) == .disk)
    }

    @Test("SDImageCacheTests 54 SDImageCacheClearOp")
    func clear() async throws {
        let (manager, cache) = try single()
        try await manager.store(jpeg, forKey: key)
        manager.clearMemory()
        #expect(await cache.containsImage(forKey: key) == .disk)
        #expect(try await manager.clearDisk() == 1)
        #expect(await cache.containsImage(forKey: key) == .none)
    }

    @Test("SDImageCacheTests 55 SDImageCachesManagerOperationPolicySimple")
    func simple() async throws {
        let defaults = ImageCachesManager.Configuration()
        #expect(defaults.queryOperationPolicy == .serial && defaults.containsOperationPolicy == .serial)
        #expect(defaults.storeOperationPolicy == .highestOnly)
        #expect(defaults.removeOperationPolicy == .concurrent && defaults.clearOperationPolicy == .concurrent)
        for policy in [ImageCachesManager.OperationPolicy.lowestOnly, .highestOnly] {
            let (manager, cache1, cache2) = try manager(policy)
            let (named, other) = policy == .lowestOnly ? (cache1, cache2) : (cache2, cache1)
            // What only the other one has does not count, and stays.
            try await other.store(png, forKey: key)
            #expect(try await manager.queryImage(forKey: key) == nil)
            #expect(await manager.containsImage(forKey: key) == .none)
            try await manager.store(jpeg, forKey: key, toDisk: false)
            #expect(named.imageFromMemoryCache(forKey: key)?.bytes == jpeg)
            #expect(await manager.containsImage(forKey: key) == .memory)
            #expect(try await manager.queryImage(forKey: key)?.image.bytes == jpeg)
            try await manager.removeImage(forKey: key)
            #expect(await named.containsImage(forKey: key) == .none)
            try await manager.store(jpeg, forKey: key)
            manager.clearMemory()
            #expect(try await manager.clearDisk() == 1)
            #expect(await named.containsImage(forKey: key) == .none)
            #expect(other.imageFromMemoryCache(forKey: key)?.bytes == png)
            #expect(try await other.clearDisk() == 1)
        }
    }

    @Test("SDImageCacheTests 56 SDImageCachesManagerOperationPolicyConcurrent")
    func concurrent() async throws {
        let (manager, cache1, cache2) = try manager(.concurrent)
        #expect(try await manager.queryImage(forKey: key) == nil)
        try await manager.store(jpeg, forKey: key)
        for cache in [cache1, cache2] {
            #expect(cache.imageFromMemoryCache(forKey: key)?.bytes == jpeg)
            #expect(await cache.diskImageExists(forKey: key))
        }
        try await manager.removeImage(forKey: key)
        for cache in [cache1, cache2] { #expect(await cache.containsImage(forKey: key) == .none) }
        try await manager.store(jpeg, forKey: key)
        manager.clearMemory()
        #expect(try await manager.clearDisk() == 2)
        // The memory of cache1 is faster than the disk of cache2.
        try await cache1.store(jpeg, forKey: key, toDisk: false)
        try await cache2.store(png, forKey: key)
        cache2.clearMemory()
        #expect(await manager.containsImage(forKey: key) == .memory)
        #expect(try await manager.queryImage(forKey: key)?.image.bytes == jpeg)
    }

    @Test("SDImageCacheTests 57 SDImageCachesManagerOperationPolicySerial")
    func serial() async throws {
        let (manager, cache1, cache2) = try manager(.serial)
        #expect(try await manager.queryImage(forKey: key) == nil)
        try await manager.store(jpeg, forKey: key)
        for cache in [cache1, cache2] { #expect(await cache.containsImage(forKey: key) == .memory) }
        try await manager.removeImage(forKey: key)
        for cache in [cache1, cache2] { #expect(await cache.containsImage(forKey: key) == .none) }
        try await manager.store(jpeg, forKey: key)
        manager.clearMemory()
        #expect(try await manager.clearDisk() == 2)
        // The disk of cache2 is slow, but comes first.
        try await cache1.store(jpeg, forKey: key, toDisk: false)
        try await cache2.store(png, forKey: key)
        cache2.clearMemory()
        #expect(await manager.containsImage(forKey: key) == .disk)
        let found = try #require(try await manager.queryImage(forKey: key))
        #expect(found.image.bytes == png && found.cacheType == .disk)
        // Without it the next one answers.
        try await cache2.removeImage(forKey: key)
        #expect(try await manager.queryImage(forKey: key)?.image.bytes == jpeg)
    }
}

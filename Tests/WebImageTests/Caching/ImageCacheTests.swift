import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("ImageCache", .timeLimit(.minutes(5)))
struct ImageCacheTests {
    private let folder = TemporaryDirectory()
    private let picture = GeneratedImage.jpeg(seed: 1, width: 40, height: 30)
    private let key = "http://example.org/a.jpg"

    private func cache(_ change: (inout ImageCache.Configuration) -> Void = { _ in }) throws -> ImageCache {
        var configuration = ImageCache.Configuration()
        change(&configuration)
        return try ImageCache(directory: folder.path("cache"), configuration: configuration)
    }

    @Test("An image is asked for in memory, then on disk, which brings it back to memory")
    func querying() async throws {
        let cache = try cache()
        #expect(try await cache.queryImage(forKey: key) == nil)
        try await cache.store(picture, forKey: key)
        for cacheType in [ImageCacheType.memory, .disk, .memory] {
            let found = try #require(try await cache.queryImage(forKey: key))
            #expect(found.cacheType == cacheType)
            #expect(found.image.bytes == picture)
            #expect(
                found.image.info == ImageInfo(format: .jpeg, width: 40, height: 30, level: .decode, colorSpace: .rgb))
            #expect(found.image.sha256 == SHA256.hash(picture).bytes)
            #expect(await cache.containsImage(forKey: key) == .memory)
            if cacheType == .memory { cache.clearMemory() }
            #expect(await cache.containsImage(forKey: key) == (cacheType == .memory ? .disk : .memory))
        }
        try await cache.removeImage(forKey: key)
        #expect(await cache.containsImage(forKey: key) == .none)
        #expect(try await cache.totalDiskCount() == 0)
    }

    @Test("Without memory everything is on disk")
    func diskOnly() async throws {
        let cache = try cache { $0.shouldCacheImagesInMemory = false }
        try await cache.store(picture, forKey: key)
        try await cache.store(picture, forKey: "b", toDisk: false)
        #expect(cache.memory == nil)
        #expect(cache.imageFromMemoryCache(forKey: key) == nil)
        #expect(try await cache.queryImage(forKey: key)?.cacheType == .disk)
        #expect(try await cache.queryImage(forKey: key)?.cacheType == .disk)
        #expect(await cache.containsImage(forKey: "b") == .none)
        cache.clearMemory()
        try await cache.removeImage(forKey: key, fromDisk: false)
        #expect(await cache.diskImageExists(forKey: key))
    }

    @Test("What is no whole image is stored nowhere", arguments: [0, 200])
    func refusing(length: Int) async throws {
        let cache = try cache()
        let before = folder.contents()
        for toDisk in [true, false] {
            await #expect(throws: WebImageError.self) {
                try await cache.store(Array(picture.prefix(length)), forKey: key, toDisk: toDisk)
            }
        }
        await #expect(throws: WebImageError.self) {
            try await cache.storeImageDataToDisk(Array(picture.prefix(length)), forKey: key)
        }
        #expect(await cache.containsImage(forKey: key) == .none)
        #expect(folder.contents() == before)
    }

    @Test("A stored image takes the place of the one under its key, in memory and on disk")
    func replacing() async throws {
        let cache = try cache()
        let other = GeneratedImage.png(seed: 2, width: 5, height: 6)
        try await cache.store(picture, forKey: key)
        try await cache.store(other, forKey: key)
        #expect(cache.imageFromMemoryCache(forKey: key)?.bytes == other)
        #expect(readFile(try #require(cache.cachePath(forKey: key))) == other)
        try await cache.storeImageDataToDisk(picture, forKey: key)
        #expect(try await cache.queryImage(forKey: key)?.image.bytes == picture)
        #expect(try await cache.totalDiskCount() == 1)
        #expect(try await cache.totalDiskSize() == (picture.count + 4095) / 4096 * 4096)
    }

    @Test("It is in memory before it is written to the disk, and stays where that fails")
    func memoryFirst() async throws {
        _ = try cache()
        let cache = try cache { $0.disk.isReadOnly = true }
        let error = await #expect(throws: WebImageError.self) { try await cache.store(picture, forKey: key) }
        #expect(error?.code == .localFault)
        #expect(cache.imageFromMemoryCache(forKey: key)?.bytes == picture)
        #expect(await !cache.diskImageExists(forKey: key))
        await #expect(throws: WebImageError.self) { try await cache.clearDisk() }
    }

    @Test("A file that passed less is verified when it is asked for; a damaged one is moved aside")
    func verifying() async throws {
        let lenient = try cache { $0.validation = .header }
        let damaged = Array(picture.dropLast(60))
        try await lenient.store(picture, forKey: "good")
        try await lenient.store(damaged, forKey: "bad")
        try await lenient.store(picture, forKey: "cut")
        let strict = try cache()
        damage(try #require(strict.cachePath(forKey: "cut")), length: 100)
        #expect(try await strict.imageFromDiskCache(forKey: "good")?.info.level == .decode)
        #expect(try strict.disk.images.find(CacheKey("good"))?.record?.level == .decode)
        #expect(try await strict.queryImage(forKey: "bad") == nil)
        #expect(try await strict.queryImage(forKey: "cut") == nil)
        #expect(await strict.containsImage(forKey: "bad") == .none)
        #expect(folder.contents().count { $0.hasPrefix("cache/bad/") && !$0.hasSuffix("/") } == 2)
        #expect(strict.memory?.count == 1)
    }

    @Test("An image that is removed while it is asked for does not come back to memory")
    func racing() async throws {
        let cache = try cache()
        for _ in 0..<300 {
            try await cache.store(picture, forKey: key)
            cache.clearMemory()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { _ = try await cache.queryImage(forKey: key) }
                group.addTask { try await cache.removeImage(forKey: key) }
                try await group.waitForAll()
            }
            #expect(await cache.containsImage(forKey: key) == .none)
        }
    }

    @Test("Old images go by age, then the oldest until the rest takes less than half of the size")
    func deletingOldFiles() async throws {
        func cache(maxAge: Double, maxSize: Int = 0) throws -> ImageCache {
            try self.cache {
                $0.maxDiskAge = maxAge
                $0.maxDiskSize = maxSize
            }
        }
        let never = try cache(maxAge: -1)
        for seconds in [0, 50, 150, 200] {
            try await never.store(picture, forKey: "\(seconds)")
            age(try #require(never.cachePath(forKey: "\(seconds)")), modified: seconds)
        }
        #expect(try await never.deleteOldFiles()?.remaining.count == 4)
        let aged = try await cache(maxAge: 175).deleteOldFiles()
        #expect(aged?.expired.count == 1 && aged?.evicted.count == 0 && aged?.remaining.count == 3)
        // One block each: three are too many, and two take more than half.
        let small = try cache(maxAge: -1, maxSize: 3 * 4096 - 1)
        let shrunk = try await small.deleteOldFiles()
        #expect(shrunk?.expired.count == 0 && shrunk?.evicted.count == 2)
        #expect(await small.diskImageExists(forKey: "0"))
        #expect(try await small.totalDiskCount() == 1)
    }

    @Test("A path without a key is none, with one it is that of the disk")
    func paths() throws {
        let cache = try cache()
        #expect(cache.cachePath(forKey: nil) == nil)
        #expect(cache.cachePath(forKey: key) == "\(folder.path("cache"))/\(CacheKey(key).path)")
        #expect(cache.cachePath(forKey: "") == cache.disk.images.path(of: CacheKey("")))
    }
}

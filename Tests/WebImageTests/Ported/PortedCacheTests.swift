import Origin
import TestSupport
import Testing

@testable import WebImage

/// SDWebImage 5.21's tests of SDImageCache, each in a folder of its own where the original shares one cache.
@Suite("Ported SDImageCacheTests", .timeLimit(.minutes(5)))
struct PortedCacheTests {
    private let folder = TemporaryDirectory()
    private let cache: ImageCache
    private let key = "TestImageKey.jpg"
    private let image = GeneratedImage.jpeg(seed: 1, width: 50, height: 40)

    init() throws {
        cache = try ImageCache(directory: folder.path("cache"))
    }

    /// Memory, disk, and how many images the disk has.
    private func expect(inMemory: Bool, onDisk: Bool, count: Int) async throws {
        #expect(cache.imageFromMemoryCache(forKey: key)?.bytes == (inMemory ? image : nil))
        #expect(await cache.diskImageExists(forKey: key) == onDisk)
        let path = try #require(cache.cachePath(forKey: key))
        #expect(readFile(path) == (onDisk ? image : nil))
        #expect(try await cache.totalDiskCount() == count)
        // What it takes of the disk: SDWebImage adds lengths up, in a walk.
        #expect(try await cache.totalDiskSize() == count * ((image.count + 4095) / 4096 * 4096))
    }

    @Test("SDImageCacheTests 04 ClearDiskCache")
    func clearDiskCache() async throws {
        try await cache.store(image, forKey: key)
        #expect(try await cache.clearDisk() == 1)
        try await expect(inMemory: true, onDisk: false, count: 0)
    }

    @Test("SDImageCacheTests 05 ClearMemoryCache")
    func clearMemoryCache() async throws {
        try await cache.store(image, forKey: key)
        cache.clearMemory()
        try await expect(inMemory: false, onDisk: true, count: 1)
    }

    /// The original stores synchronously in memory and hears of the disk later. Here the image is verified first, which takes time; so the
    /// order is what a disk that refuses shows.
    @Test("SDImageCacheTests 06 InsertionOfImage")
    func insertionOfImage() async throws {
        var readOnly = ImageCache.Configuration()
        readOnly.disk.isReadOnly = true
        let refusing = try ImageCache(directory: folder.path("cache"), configuration: readOnly)
        await #expect(throws: WebImageError.self) { try await refusing.store(image, forKey: key) }
        #expect(refusing.imageFromMemoryCache(forKey: key)?.bytes == image)
        try await cache.store(image, forKey: key)
        try await expect(inMemory: true, onDisk: true, count: 1)
    }

    @Test("SDImageCacheTests 07 InsertionOfImageForcingDiskStorage")
    func insertionForcingDiskStorage() async throws {
        try await cache.store(image, forKey: key, toDisk: true)
        try await expect(inMemory: true, onDisk: true, count: 1)
    }

    @Test("SDImageCacheTests 08 InsertionOfImageOnlyInMemory")
    func insertionOnlyInMemory() async throws {
        try await cache.store(image, forKey: key, toDisk: false)
        try await expect(inMemory: true, onDisk: false, count: 0)
        cache.clearMemory()
        try await expect(inMemory: false, onDisk: false, count: 0)
    }

    @Test("SDImageCacheTests 09 RetrieveImageThroughNSOperation")
    func retrieve() async throws {
        try await cache.store(image, forKey: key)
        #expect(try await cache.queryImage(forKey: key)?.image.bytes == image)
        cache.clearMemory()
        #expect(try await cache.queryImage(forKey: key)?.image.bytes == image)
    }

    @Test("SDImageCacheTests 10 RemoveImageForKeyWithCompletion")
    func removeImage() async throws {
        try await cache.store(image, forKey: key)
        try await cache.removeImage(forKey: key)
        #expect(try await cache.imageFromDiskCache(forKey: key) == nil)
        try await expect(inMemory: false, onDisk: false, count: 0)
    }

    @Test("SDImageCacheTests 11 RemoveImageforKeyNotFromDiskWithCompletion")
    func removeImageNotFromDisk() async throws {
        try await cache.store(image, forKey: key)
        try await cache.removeImage(forKey: key, fromDisk: false)
        try await expect(inMemory: false, onDisk: true, count: 1)
        #expect(try await cache.imageFromDiskCache(forKey: key)?.bytes == image)
    }

    @Test("SDImageCacheTests 12 RemoveImageforKeyFromDiskWithCompletion")
    func removeImageFromDisk() async throws {
        try await cache.store(image, forKey: key)
        try await cache.removeImage(forKey: key, fromDisk: true)
        #expect(try await cache.imageFromDiskCache(forKey: key) == nil)
        try await expect(inMemory: false, onDisk: false, count: 0)
    }

    private func expiring(_ change: (inout ImageCache.Configuration) -> Void) throws -> ImageCache {
        var configuration = ImageCache.Configuration()
        change(&configuration)
        return try ImageCache(directory: folder.path("cache"), configuration: configuration)
    }

    /// The original waits for a second to pass; here the file is as if it had.
    @Test("SDImageCacheTests 13 DeleteOldFiles")
    func deleteOldFiles() async throws {
        let expiring = try expiring { $0.maxDiskAge = 1 }
        try await expiring.store(image, forKey: key)
        try await expiring.deleteOldFiles()
        #expect(try await expiring.totalDiskCount() == 1)
        age(try #require(expiring.cachePath(forKey: key)), modified: 2)
        try await expiring.deleteOldFiles()
        #expect(try await expiring.totalDiskCount() == 0)
        try await expect(inMemory: false, onDisk: false, count: 0)
    }

    @Test("SDImageCacheTests 45 DiskCacheRemoveExpiredData")
    func removeExpiredData() async throws {
        try await cache.storeImageDataToDisk(image, forKey: key)
        // Over the limit: all must go, since nothing is less than half of it.
        let small = try expiring { $0.maxDiskSize = 1 }
        try await small.deleteOldFiles()
        try await expect(inMemory: false, onDisk: false, count: 0)
        try await cache.storeImageDataToDisk(image, forKey: key)
        let old = try expiring { $0.maxDiskAge = 1 }
        age(try #require(cache.cachePath(forKey: key)), modified: 2)
        try await old.deleteOldFiles()
        try await expect(inMemory: false, onDisk: false, count: 0)
    }

    @Test("SDImageCacheTests 20 InitialCacheSize")
    func initialCacheSize() async throws {
        #expect(try await cache.totalDiskSize() == 0)
        #expect(try await cache.totalDiskCount() == 0)
    }

    @Test("SDImageCacheTests 21 InitialDiskCount")
    func initialDiskCount() async throws {
        try await cache.store(image, forKey: key)
        #expect(try await cache.totalDiskCount() == 1)
        #expect(try await cache.totalDiskSize() == (image.count + 4095) / 4096 * 4096)
    }

    @Test("SDImageCacheTests 31 CachePathForAnyKey")
    func cachePathForAnyKey() {
        #expect(cache.cachePath(forKey: key) == "\(folder.path("cache"))/\(CacheKey(key).path)")
    }

    @Test("SDImageCacheTests 32 CachePathForNilKey")
    func cachePathForNilKey() {
        #expect(cache.cachePath(forKey: nil) == nil)
    }

    @Test("SDImageCacheTests 33 CachePathForExistingKey")
    func cachePathForExistingKey() async throws {
        try await cache.store(image, forKey: key)
        #expect(readFile(try #require(cache.cachePath(forKey: key))) == image)
    }

    /// Our files have no extension: no part of a URL reaches a path. SDWebImage's names are what these tests are about.
    @Test(
        "SDImageCacheTests 34 to 37 CachePathForSimpleKeyWithExtension, KeyWithDotButNoExtension, KeyWithURLQueryParams, KeyWithTooLongExtension",
        arguments: [
            ("https://placehold.co/50x50.jpg", "e9936aba8d7f7fcca7813d72290de957.jpg"),
            (
                "https://maps.googleapis.com/maps/api/staticmap?center=48.8566,2.3522&format=png&maptype=ro"
                    + "admap&scale=2&size=375x200&zoom=15",
                "e71fc3239f5147046b9e7f07ad7e7d61"
            ),
            (
                "https://imggen.alicdn.com/3b11cea896a9438329d85abfb07b30a8.jpg?aid=tanx&tid=1166&m=%7B%22i"
                    + "mg_url%22%3A%22https%3A%2F%2Fgma.alicdn.com%2Fbao%2Fuploaded%2Fi4%2F1695306010722305097%2F"
                    + "TB2S2KjkHtlpuFjSspoXXbcDpXa_%21%210-saturn_solar.jpg_sum.jpg%22%2C%22title%22%3A%22%E6%A4%"
                    + "8D%E7%89%A9%E8%94%B7%E8%96%87%E7%8E%AB%E7%91%B0%E8%8A%B1%22%2C%22promot_name%22%3A%22%22%2"
                    + "C%22itemid%22%3A%22546038044448%22%7D&e=cb88dab197bfaa19804f6ec796ca906dab536b88fe6d447579"
                    + "5c7ee661a7ede1&size=640x246",
                "5a2eb51f0876cb264d8d5696ff09f8cc.jpg"
            ),
            (
                "https://imggen.alicdn.com/3b11cea896a9438329d85abfb07b30a8.jpgasaaaaaaaaaaaaaaaaaaaajjjjjj"
                    + "jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj"
                    + "jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjaaaaaaaaaaaaaaaaajjj"
                    + "jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj"
                    + "jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj",
                "d4cb950fe4ba653e5f2915acb513e671"
            ),
        ])
    func cachePathExtensions(key: String, name: String) {
        #expect(SDWebImageFileName.name(forKey: key, layout: .v5) == name)
        #expect(SDWebImageFileName.name(forKey: key, layout: .v4) == name)
        #expect(cache.cachePath(forKey: key)?.hasSuffix(CacheKey(key).path) == true)
    }

    @Test("SDImageCacheTests 40 InsertionOfImageData")
    func insertionOfImageData() async throws {
        try await cache.storeImageDataToDisk(image, forKey: key)
        try await expect(inMemory: false, onDisk: true, count: 1)
        let path = try #require(cache.cachePath(forKey: key))
        let read = try #require(readFile(path))
        let info = try ImageCoder().verify(read, level: .decode)
        #expect((info.width, info.height) == (50, 40))
    }

    @Test(
        "SDImageCacheTests 49 DiskCacheKeyForInvalidURL",
        arguments: [
            (
                "http://e.hiphotos.baidu.com/image/pic/item/a1ec08fa513d2697e542494057fbb2fb4316d81e.jpg00%00",
                "0b0e3e3c852d113f97d4197694409049.jpg00"
            ),
            (
                "https://maps.googleapis.com/maps/api/staticmap?center=48.8566,2.3522&format=png&maptype=ro"
                    + "admap&scale=2&size=375x200&zoom=15",
                "e71fc3239f5147046b9e7f07ad7e7d61"
            ),
        ])
    func diskCacheKeyForInvalidURL(url: String, name: String) {
        #expect(cache.key(for: url) == url)
        #expect(SDWebImageFileName.name(forKey: url) == name)
    }
}

import Foundation
import CLinux
import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

/// SDWebImage 5.21's tests of SDImageCache about instances, directories, queries and what stands beside an image.
///
/// Not ported:
/// - 14 QueryCacheFirstFrameOnlyHitMemoryCache (an image in memory is its encoded bytes, of which no frame is taken out),
/// - 41 MatchAnimatedImageClassWorks (there are no image classes a query could ask for),
/// - 46 MemoryCacheWeakCache, its weak half (nobody shows an image here and so keeps it alive; its limits are in `MemoryCacheTests`),
/// - 48 CacheUseConcurrentIOQueue (commented out in the original; an asynchronous call returns to its caller's executor by the language).
@Suite("Ported SDImageCacheTests, storage", .timeLimit(.minutes(5)))
struct PortedCacheStorageTests {
    private let folder = TemporaryDirectory()
    private let key = "TestImageKey.jpg"
    private let image = GeneratedImage.jpeg(seed: 1, width: 50, height: 40)

    /// The shared cache is that of the shared manager, which belongs to a process: so this test has one of its own.
    @Test("SDImageCacheTests 01 SharedImageCache, 02 Singleton, 03 ImageCacheCanBeInstantiated")
    func instances() async {
        await #expect(processExitsWith: .success) {
            let folder = TemporaryDirectory()
            setenv("XDG_CACHE_HOME", folder.path, 1)
            let shared = try ImageManager.shared.cache
            let again = try ImageManager.shared.cache
            precondition(shared === again)
            let own = try ImageCache(directory: folder.path("own"))
            precondition(own !== shared && own.disk.directory != shared.disk.directory)
        }
    }

    @Test("SDImageCacheTests 15 CancelQueryShouldCallbackOnceInSync")
    func cancelQuery() async throws {
        let cache = try ImageCache(directory: folder.path("cache"))
        try await cache.store(image, forKey: key)
        cache.clearMemory()
        // Where the original calls back once and synchronously, an asynchronous call ends once.
        let task = Task { () async -> WebImageError.Code? in
            while !Task.isCancelled { await Task.yield() }
            do throws(WebImageError) {
                _ = try await cache.queryImage(forKey: key)
                return nil
            } catch {
                return error.code
            }
        }
        task.cancel()
        #expect(await task.value == .cancelled)
        // It has not gone to memory behind the caller's back.
        #expect(cache.imageFromMemoryCache(forKey: key) == nil)
        #expect(try await cache.queryImage(forKey: key)?.cacheType == .disk)
    }

    /// The original adds a coder that writes a text of its own and reads another image. Here nobody can add one, since what a cache has is
    /// verified by it; but it is the cache's own coder that decides, when an image is stored and when it is found.
    @Test("SDImageCacheTests 41 ThatCustomDecoderWorksForImageCache")
    func customCoder() async throws {
        let usual = try ImageCache(directory: folder.path("cache"))
        try usual.disk.images.store(ImageBody(image), for: CacheKey(key), record: record(image, level: .header))
        var configuration = ImageCache.Configuration()
        configuration.coder.limits.maxDimension = 49
        let custom = try ImageCache(directory: folder.path("cache"), configuration: configuration)
        let error = await #expect(throws: WebImageError.self) { try await custom.store(image, forKey: "another") }
        #expect(error?.code == .tooLarge)
        #expect(await custom.containsImage(forKey: "another") == .none)
        #expect(await custom.containsImage(forKey: key) == .disk)
        #expect(try await custom.imageFromDiskCache(forKey: key) == nil)
        // Nothing is known to be wrong with it.
        #expect(await usual.containsImage(forKey: key) == .disk)
        try await usual.store(image, forKey: key)
        #expect(try await usual.imageFromDiskCache(forKey: key)?.bytes == image)
    }

    /// The original's image knows the format it was decoded from; here it is named.
    @Test("SDImageCacheTests 42 StoreCacheWithImageAndFormatWithoutImageData")
    func imageWithoutData() async throws {
        let cache = try ImageCache(directory: folder.path("cache"))
        func stored(_ bitmap: Bitmap, _ format: ImageFormat? = nil) async throws -> ImageInfo? {
            try await cache.store(bitmap, format: format, forKey: key)
            let memory = try #require(cache.imageFromMemoryCache(forKey: key))
            cache.clearMemory()
            let disk = try await cache.imageFromDiskCache(forKey: key)
            #expect(disk?.bytes == memory.bytes && disk?.info.level == .decode)
            #expect(disk?.info.width == bitmap.width && disk?.info.height == bitmap.height)
            return disk?.info
        }
        let pixels = (0..<64 * 48 * 4).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let clear = try Bitmap(width: 64, height: 48, hasAlpha: true, pixels: pixels)
        let opaque = try Bitmap(width: 48, height: 64, hasAlpha: false, pixels: Array(pixels.prefix(64 * 48 * 3)))
        // Case 1 and 2: PNG for alpha, JPEG without it.
        #expect(try await stored(clear)?.format == .png)
        #expect(try await stored(opaque)?.format == .jpeg)
        // Case 3: the format that is named.
        #expect(try await stored(clear, .jpeg)?.format == .jpeg)
        #expect(try await stored(opaque, .png)?.format == .png)
        // Case 4: an animation is the bytes it came in.
        let animated = GeneratedImage.gif(seed: 3, width: 9, height: 7, frames: 3)
        try await cache.store(animated, forKey: "animated")
        cache.clearMemory()
        #expect(try await cache.imageFromDiskCache(forKey: "animated")?.bytes == animated)
        // Case 5: nothing here writes GIF, and says so.
        let error = await #expect(throws: WebImageError.self) {
            try await cache.store(clear, format: .gif, forKey: "frames")
        }
        #expect(error?.code == .invalidConfiguration && error?.message.contains("GIF") == true)
        #expect(await cache.containsImage(forKey: "frames") == .none)
    }

    /// The original has a file manager that fails; here the directory is gone, so that nothing can be made in it.
    @Test("SDImageCacheTests 41 StoreImageDataToDiskWithCustomFileManager")
    func failingDirectory() async throws {
        let cache = try ImageCache(directory: folder.path("cache"))
        try FileManager.default.removeItem(atPath: folder.path("cache"))
        let error = await #expect(throws: WebImageError.self) {
            try await cache.storeImageDataToDisk(image, forKey: key)
        }
        #expect(error?.code == .localFault && error?.underlyingCode == ENOENT)
        #expect(error?.message.contains(folder.path("cache")) == true)
    }

    @Test("SDImageCacheTests 43 CustomDefaultCacheDirectory")
    func defaultDirectory() throws {
        let environment = ["XDG_CACHE_HOME": folder.path, "HOME": folder.path("home")]
        let custom = try ImageCache.defaultDirectory { environment[$0] }
        #expect(custom == folder.path("prefetch"))
        #expect(try ImageCache(directory: custom).cachePath(forKey: key)?.hasPrefix(custom) == true)
        // Without it there is the usual one again.
        let usual = try ImageCache.defaultDirectory { $0 == "HOME" ? environment[$0] : nil }
        #expect(usual == folder.path("home/.cache/prefetch"))
    }

    @Test("SDImageCacheTests 47 DiskCacheExtendedData", arguments: CacheMode.allCases)
    func extendedData(mode: CacheMode) throws {
        let disk = try DiskCache(directory: folder.path("cache"), configuration: mode.configuration())
        let known = HTTPValidators(etag: "\"a\"")
        try disk.images.store(ImageBody(image), for: CacheKey(key), record: record(image), validators: known)
        let entry = try #require(try disk.find(forKey: key))
        #expect(disk.images.validators(of: entry) == known)
        // Another value in its place, then none with an image that has none.
        let other = HTTPValidators(etag: "\"b\"", lastModified: "Sat, 21 Nov 2026 00:00:00 GMT")
        #expect(try disk.images.renew(entry, validators: other))
        #expect(disk.images.validators(of: try #require(try disk.find(forKey: key))) == other)
        try disk.images.remove(CacheKey(key))
        try disk.images.store(ImageBody(image), for: CacheKey(key), record: record(image))
        #expect(disk.images.validators(of: try #require(try disk.find(forKey: key))) == nil)
    }

    @Test("SDImageCacheTests 49 SDImageCacheQueryOp")
    func queryOperation() async throws {
        let cache = try ImageCache(directory: folder.path("cache"))
        try await cache.storeImageDataToDisk(image, forKey: key)
        #expect(await cache.containsImage(forKey: key) == .disk)
        #expect(cache.imageFromMemoryCache(forKey: key) == nil)
        let found = try #require(try await cache.queryImage(forKey: key))
        #expect(found.cacheType == .disk && found.image.bytes == image)
        #expect(await cache.containsImage(forKey: key) == .memory)
        #expect(try await cache.queryImage(forKey: "another.jpg") == nil)
    }

    @Test("SDFileAttributeHelperTests: an attribute is set, found, read and removed with its file")
    func attributes() throws {
        let disk = try DiskCache(directory: folder.path("cache"))
        try disk.images.store(ImageBody(image), for: CacheKey(key), record: record(image))
        let path = disk.images.path(of: CacheKey(key))
        var value = [UInt8](repeating: 0, count: 200)
        #expect(getxattr(path, "user.prefetch", &value, value.count) == 64)
        #expect(CacheRecord(Array(value.prefix(64)))?.length == image.count)
        chmod(path, 0o600)
        #expect(removexattr(path, "user.prefetch") == 0)
        #expect(getxattr(path, "user.prefetch", &value, value.count) < 0 && errno == ENODATA)
        // What has lost it is not lost: only its bytes can tell what it is.
        #expect(try disk.find(forKey: key)?.standing == .unverified)
    }
}

import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

/// SDWebImage 5.21's tests of SDWebImageManager, against a loopback origin.
///
/// Those about pixels are in PortedManagerPixelTests. Not here are 12, 14, 16 and 17 (caches of their own for originals and thumbnails), 20
/// (options of a load's own coder) and 22 (a screen's colour space).
@Suite("Ported SDWebImageManagerTests", .timeLimit(.minutes(5)))
struct PortedManagerTests {
    private let fixture: ManagerFixture

    init() throws {
        fixture = try ManagerFixture()
    }

    @Test("SDWebImageManagerTests 01 ThatSharedManagerIsNotEqualToInitManager")
    func shared() async {
        await #expect(processExitsWith: .success) {
            let folder = TemporaryDirectory()
            setenv("XDG_CACHE_HOME", folder.path, 1)
            let manager = try ImageManager(cache: ImageCache(directory: folder.path("own")))
            let (shared, again) = (try ImageManager.shared, try ImageManager.shared)
            precondition(manager !== shared && shared === again)
        }
    }

    @Test("SDWebImageManagerTests 02 ThatDownloadInvokesCompletionBlockWithCorrectParamsAsync")
    func correctParameters() async throws {
        let (url, bytes) = fixture.image("/a.png", size: 50, fault: .stallBeforeHeader)
        let manager = try fixture.manager()
        let load = Task { try await manager.loadImage(with: url) }
        await fixture.origin.waitForRequests(1)
        #expect(manager.isRunning)
        fixture.origin.release("/a.png")
        let image = try await load.value
        #expect(image.url == url)
        #expect(image.info == ImageInfo(format: .png, width: 50, height: 50, level: .decode, colorSpace: .rgb))
        #expect(image.outcome == .downloaded && image.cacheType == .none)
        #expect(readFile(try #require(image.path)) == bytes)
        #expect(!manager.isRunning)
        #expect(fixture.origin.requestCount() == 1)
    }

    @Test("SDWebImageManagerTests 03 ThatDownloadWithIncorrectURLInvokesCompletionBlockWithAnErrorAsync")
    func incorrectURL() async throws {
        let url = fixture.origin.url("/44771656:jpeg_preview_small.png")
        let manager = try fixture.manager()
        let delegate = RecordingDelegate()
        manager.delegate = delegate
        let error = await manager.failure(url)
        #expect(error?.code.rawValue == 2001 && error?.httpStatus == 404)
        // The same URL, byte for byte.
        #expect(delegate.asked == ["download \(url)", "block \(url) 2001"])
        #expect(manager.failedURLs.contains(url))
        #expect(await !manager.cachedImageExists(for: url))
        #expect(!manager.isRunning)
    }

    @Test("SDWebImageManagerTests 06 CancellAll")
    func cancelAll() async throws {
        let (url, _) = fixture.image("/joy.gif", fault: .stall(after: 20))
        let manager = try fixture.manager()
        let load = Task { await manager.failure(url) }
        await fixture.origin.waitForRequests(1)
        manager.cancelAll()
        #expect(await load.value?.code.rawValue == 2002)
        #expect(!manager.isRunning)
        #expect(await manager.downloader.currentDownloadCount == 0)
        #expect(manager.failedURLs.count == 0)
        #expect(try await manager.cache.totalDiskCount() == 0)
    }

    @Test("SDWebImageManagerTests 07 ThatLoadImageWithSDWebImageRefreshCachedWorks")
    func refreshCached() async throws {
        let (url, _) = fixture.image("/a.jpg")
        let manager = try fixture.manager()
        #expect(try await manager.loadImage(with: url).outcome == .downloaded)
        let image = try await manager.loadImage(with: url, options: .refreshCached)
        #expect(image.url == url && image.path != nil)
    }

    @Test("SDWebImageManagerTests 08 ThatImageTransformerWork")
    func transformer() async throws {
        let (url, _) = fixture.image("/a.png", size: 50)
        let other = GeneratedImage.png(seed: 40, width: 40, height: 30)
        let manager = try fixture.manager()
        let delegate = TransformingDelegate { _ in other }
        manager.delegate = delegate
        let image = try await manager.loadImage(with: url)
        #expect(image.info.width == 40 && image.info.height == 30 && image.outcome == .downloaded)
        #expect(readFile(try #require(image.path)) == other)
        #expect(manager.cache.imageFromMemoryCache(forKey: url)?.bytes == other)
        #expect(try await manager.loadImage(with: url).info.width == 40)
        // What it makes has to be an image.
        let (second, _) = fixture.image("/b.png")
        let broken = TransformingDelegate { _ in [1, 2, 3] }
        manager.delegate = broken
        #expect(await manager.failure(second)?.code == .badImageData)
    }

    @Test("transformDownloadedImage without an image: nothing is stored or listed, and a cached image stays")
    func transformsIntoNothing() async throws {
        let (url, _) = fixture.image("/a.png", size: 50)
        let manager = try fixture.manager()
        let nothing = TransformingDelegate { _ in nil }
        manager.delegate = nothing
        for _ in 1...2 {
            let failure = await manager.failure(url)
            #expect(failure?.code == .imageRefused && failure?.message == "transformDownloadedImage returned no image")
        }
        #expect(fixture.origin.requestCount() == 2)
        #expect(await manager.cache.containsImage(forKey: url) == .none)
        #expect(!manager.failedURLs.contains(url))

        // A delegate that does not transform keeps the image.
        let (other, bytes) = fixture.image("/b.png", size: 20)
        let silent = SilentDelegate()
        manager.delegate = silent
        let kept = try await manager.loadImage(with: other)
        #expect(readFile(try #require(kept.path)) == bytes)
        manager.delegate = nothing
        await #expect(throws: WebImageError.self) { try await manager.loadImage(with: other, options: .refreshCached) }
        #expect(readFile(try #require(kept.path)) == bytes)
    }

    @Test("SDWebImageManagerTests 09 ThatCacheKeyFilterWork")
    func cacheKeyFilter() async throws {
        let (url, bytes) = fixture.image("/50x50.png")
        let (other, _) = fixture.image("/other.png")
        let key = "kTestJPEGURL"
        let manager = try fixture.manager(cache: fixture.cache(filter: { $0 == url ? key : nil }))
        #expect(manager.cacheKey(for: url) == key)
        #expect(manager.cacheKey(for: other) == other)
        let image = try await manager.loadImage(with: url)
        #expect(image.cacheType == .none && image.key == key && image.url == url)
        #expect(await manager.cache.containsImage(forKey: key) == .memory)
        #expect(await manager.cache.diskImageExists(forKey: key))
        #expect(await manager.cache.containsImage(forKey: url) == .none)
        #expect(readFile(try #require(manager.cache.cachePath(forKey: key))) == bytes)
        #expect(try await manager.loadImage(with: url).cacheType == .memory)
        #expect(await manager.cachedImageExists(for: url))
        #expect(await manager.diskImageExists(for: url))
        #expect(await !manager.cachedImageExists(for: other))
        #expect(fixture.origin.requestCount() == 1)
    }

    @Test("SDWebImageManagerTests 10 ThatCacheSerializerWork")
    func cacheSerializer() async throws {
        let (url, bytes) = fixture.image("/a.png", size: 50)
        let other = GeneratedImage.png(seed: 7, width: 7, height: 7)
        let manager = try fixture.manager(configure: { $0.cacheSerializer = { _, _, _ in other } })
        let image = try await manager.loadImage(with: url)
        #expect(readFile(try #require(image.path)) == other)
        // In memory the image stays what it was.
        #expect(manager.cache.imageFromMemoryCache(forKey: url)?.bytes == bytes)
        #expect(try manager.cache.disk.images.find(CacheKey(url))?.record?.width == 7)
    }

    @Test("SDWebImageManagerTests 11 ThatOptionsProcessorWork")
    func optionsProcessor() async throws {
        let (url, _) = fixture.image("/a.png")
        let (other, _) = fixture.image("/b.png")
        let manager = try fixture.manager(configure: {
            $0.optionsProcessor = { $0 == url ? $1.union(.fromCacheOnly) : $1 }
        })
        #expect(await manager.failure(url)?.code == .notCached)
        #expect(await manager.failure(other) == nil)
    }
}

/// Makes something else of every image.
final class TransformingDelegate: ImageManagerDelegate {
    private let transform: @Sendable (ImageInfo) -> [UInt8]?
    init(_ transform: @escaping @Sendable (ImageInfo) -> [UInt8]?) { self.transform = transform }
    func imageManager(
        _ imageManager: ImageManager, transformDownloadedImage image: ImageBody, info: ImageInfo, for url: String
    ) -> ImageBody? { transform(info).map { ImageBody($0) } }
}

private final class SilentDelegate: ImageManagerDelegate {}

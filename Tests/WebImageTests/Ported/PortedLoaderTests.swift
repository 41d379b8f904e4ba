import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

/// A loader of images that are in memory (SDWebImageTestLoader).
private struct StubLoader: ImageLoader {
    let scheme: String
    let images: [String: [UInt8]]
    var blocks: Bool?
    let asked = Locked<[String]>([])

    func canRequestImage(for url: String) -> Bool { url.hasPrefix("\(scheme):") }

    func requestImage(
        for url: String, options: WebImageOptions, progress: @Sendable (Int, Int) -> Void
    ) async throws(WebImageError) -> [UInt8] {
        asked.withLock { $0.append(url) }
        guard let bytes = images[url] else { throw WebImageError(.cannotFindHost, "there is no \(url)") }
        progress(bytes.count, bytes.count)
        return bytes
    }

    func shouldBlockFailedURL(_ url: String, with error: WebImageError) -> Bool? { blocks }
}

/// SDWebImage 5.21's tests of loaders, and those of a manager and a downloader with parts of a program's own.
@Suite("Ported loader tests", .timeLimit(.minutes(5)))
struct PortedLoaderTests {
    private let fixture: ManagerFixture

    init() throws {
        fixture = try ManagerFixture()
    }

    private func png(_ size: Int) -> [UInt8] { GeneratedImage.png(seed: UInt64(size), width: size, height: size) }

    @Test("SDWebImageDownloaderTests CustomImageLoaderWorks")
    func custom() async throws {
        let loader = StubLoader(scheme: "memory", images: ["memory:a": png(9)], blocks: false)
        let manager = try fixture.manager(policy: .sd3) { $0.loader = loader }
        let calls = Locked<[[Int]]>([])
        let image = try await manager.loadImage(with: "memory:a") { received, expected in
            calls.withLock { $0.append([received, expected]) }
        }
        #expect(image.info.width == 9 && image.outcome == .downloaded && image.httpStatus == nil && image.tries == 1)
        #expect(calls.withLock { $0 } == [[0, -1], [png(9).count, png(9).count]])
        #expect(try await manager.loadImage(with: "memory:a").outcome == .hit)
        // Its failures are its own to judge.
        let error = await manager.failure("memory:b")
        #expect(error?.code == .cannotFindHost && !manager.failedURLs.contains("memory:b"))
        #expect(fixture.origin.requestCount() == 0)
        // What it does not load the downloader does, and judges.
        let (url, _) = fixture.image("/a.png", size: 5)
        #expect(try await manager.loadImage(with: url).info.width == 5)
        #expect(await manager.failure("other:a")?.code == .refused)
        let missing = fixture.origin.url("/404")
        #expect(await manager.failure(missing)?.httpStatus == 404 && manager.failedURLs.contains(missing))
        #expect(loader.asked.withLock { $0 } == ["memory:a", "memory:b"])
    }

    @Test("SDWebImageDownloaderTests 06 ThatUsingACustomDownloaderOperationWorks")
    func operation() async throws {
        // What loads an image in the place of the downloader's operation is a loader here.
        let loader = StubLoader(scheme: "http", images: [fixture.origin.url("/a.png"): png(9)])
        let manager = try fixture.manager { $0.loader = loader }
        let url = fixture.origin.url("/a.png")
        #expect(try await manager.loadImage(with: url).info.width == 9)
        #expect(loader.asked.withLock { $0 } == [url] && fixture.origin.requestCount() == 0)
    }

    @Test("SDWebImageDownloaderTests 30 ThatDifferentThumbnailLoadShouldCallbackDifferentSize")
    func thumbnails() async throws {
        let (url, _) = fixture.image("/a.png", size: 60)
        let manager = try fixture.manager()
        let sizes = try await withThrowingTaskGroup(of: Int.self) { group in
            for size in [10, 20, 30] {
                group.addTask {
                    var request = ImageRequest(url)
                    request.variant = ImageVariant()
                    request.variant?.resize = PixelSize(width: size, height: size)
                    return try await manager.loadImage(request).info.width
                }
            }
            return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(sizes.sorted() == [10, 20, 30])
    }

    @Test("SDWebImageManagerTests 12 ThatStoreCacheTypeWorks")
    func storeTypes() async throws {
        let (url, bytes) = fixture.image("/a.png", size: 60)
        let manager = try fixture.manager()
        var request = ImageRequest(url)
        var variant = ImageVariant()
        variant.resize = PixelSize(width: 30, height: 30)
        variant.keepsOriginal = true
        request.variant = variant
        let image = try await manager.loadImage(request)
        let key = TransformedKey.key(url, transformerKey: variant.transformerKey)
        #expect(image.key == key && image.info.width == 30)
        // The transformed image is in memory and on disk, the original on disk alone.
        #expect(await manager.cache.containsImage(forKey: key) == .memory)
        #expect(await manager.cache.diskImageExists(forKey: key))
        #expect(await manager.cache.containsImage(forKey: url) == .disk)
        #expect(try await manager.cache.imageFromDiskCache(forKey: url)?.bytes == bytes)
    }

    @Test("SDWebImageManagerTests 17 ThatThumbnailCacheQueryNotWriteToWrongKey")
    func wrongKey() async throws {
        let (url, bytes) = fixture.image("/a.png", size: 60)
        let manager = try fixture.manager()
        try await manager.cache.store(bytes, forKey: url)
        manager.cache.clearMemory()
        var request = ImageRequest(url)
        request.variant = ImageVariant()
        request.variant?.resize = PixelSize(width: 20, height: 20)
        #expect(try await manager.loadImage(request).info.width == 20)
        // The full size was read, and neither the thumbnail nor it is in memory under the URL.
        #expect(manager.cache.memory?.contains(url) == false)
        #expect(try await manager.loadImage(with: url).info.width == 60)
        #expect(fixture.origin.requestCount() == 0)
    }

    @Test("SDWebImageManagerTests 20 ThatContextPassDecodeOptionsWorks")
    func decodeOptions() async throws {
        let coder = RecordingCoder()
        let coders = ImageCodersManager()
        coders.addCoder(coder)
        let (url, _) = fixture.image("/a.png", size: 60)
        let image = try await fixture.manager().loadImage(with: url)
        var options = ImageDecodeOptions()
        options.scale = 3
        options.thumbnailPixelSize = PixelSize(width: 10, height: 10)
        _ = try image.bitmap(options: options, coder: ImageCoder(coders: coders))
        #expect(coder.options.withLock { $0 } == [options])
    }
}

/// Records how it is asked to decode.
private final class RecordingCoder: ImageCoding {
    let options = Locked<[ImageDecodeOptions]>([])

    func canDecode(_ bytes: UnsafeRawBufferPointer) -> Bool { true }

    func canEncode(to format: ImageFormat?) -> Bool { false }

    func encodedData(with image: Bitmap, format: ImageFormat?) throws(WebImageError) -> [UInt8] { [] }

    func decodedImage(
        with bytes: UnsafeRawBufferPointer, options: ImageDecodeOptions
    ) throws(WebImageError) -> Bitmap {
        self.options.withLock { $0.append(options) }
        return try Bitmap(width: 1, height: 1, hasAlpha: false, pixels: [1, 2, 3])
    }
}

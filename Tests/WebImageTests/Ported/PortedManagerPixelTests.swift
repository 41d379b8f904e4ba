import Origin
import TestSupport
import Testing

@testable import WebImage

/// SDWebImage 5.21's tests of SDWebImageManager and SDWebImageDownloader that are about pixels: transformers, thumbnails, large images and
/// coders of a program's own.
@Suite("Ported SDWebImageManagerTests: pixels", .timeLimit(.minutes(5)))
struct PortedManagerPixelTests {
    private let fixture: ManagerFixture
    private var origin: OriginServer { fixture.origin }

    init() throws {
        fixture = try ManagerFixture()
    }

    private func thumbnails(_ side: Int, keepsOriginal: Bool = false) throws -> ImageManager {
        let transformer = try ImageResizingTransformer(width: side, height: side)
        return try fixture.manager(configure: {
            $0.transformer = transformer
            $0.keepsOriginalImage = keepsOriginal
        })
    }

    private func key(_ url: String, _ side: Int) throws -> String {
        let transformer = try ImageResizingTransformer(width: side, height: side)
        return TransformedKey.key(url, transformerKey: transformer.transformerKey)
    }

    @Test("SDWebImageManagerTests 08 ThatImageTransformerWork: a transformer")
    func transformer() async throws {
        origin.route("/a.jpg", OriginResponse(body: GeneratedImage.jpeg(seed: 1, width: 80, height: 60)))
        let url = origin.url("/a.jpg"), manager = try thumbnails(40)
        let image = try await manager.loadImage(with: url)
        let key = try key(url, 40)
        #expect(image.key == key && image.outcome == .downloaded)
        #expect((image.info.width, image.info.height, image.info.format) == (40, 30, .jpeg))
        let stored = readFile(try #require(image.path)), data = try image.data()
        #expect(stored == data)
        #expect(try image.bitmap().width == 40)
        #expect(await manager.diskImageExists(for: url) == false)
        #expect(try await manager.loadImage(with: url).outcome == .hit)
        #expect(origin.requestCount() == 1)
    }

    @Test("SDWebImageManagerTests 13 ThatScaleDownLargeImageUseThumbnailDecoding")
    func scaleDown() async throws {
        origin.route("/large.jpg", OriginResponse(body: GeneratedImage.jpeg(seed: 1, width: 2000, height: 2000)))
        let manager = try fixture.manager()
        var image = try await manager.loadImage(with: origin.url("/large.jpg"), options: .scaleDownLargeImages)
        #expect(image.decodeOptions.scaleDownLimitBytes == 60 << 20)
        image.decodeOptions.scaleDownLimitBytes = 1000 * 1000 * 4
        let bitmap = try image.bitmap()
        #expect((bitmap.width, bitmap.height) == (1000, 1000))
        // The bytes in the cache are those that came.
        let path = try #require(image.path)
        #expect(image.info.width == 2000 && readFile(path)?.count == image.byteCount)
        var options = image.decodeOptions
        options.isPartial = true
        let half = try image.data().prefix(image.byteCount / 2)
        let partial = try ImageCoder().decode(Array(half), options: options)
        #expect((partial.width, partial.height) == (1000, 1000) && partial.decodedRows < 1000)
    }

    @Test("SDWebImageManagerTests 13 ThatScaleDownLargeImageEXIFOrientationImage")
    func scaleDownTurned() async throws {
        var picture = try ImageCoder().decode(GeneratedImage.png(seed: 1, width: 900, height: 600))
        picture.metadata.exif =
            Array("II*\0".utf8) + [8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]
        origin.route("/turned.jpg", OriginResponse(body: try ImageCoder().encode(picture, as: .jpeg)))
        let image = try await fixture.manager().loadImage(with: origin.url("/turned.jpg"))
        #expect(image.info.orientation == .right && (image.info.displayWidth, image.info.displayHeight) == (600, 900))
        var options = ImageDecodeOptions()
        options.scaleDownLimitBytes = 300 * 200 * 4
        let upright = try image.bitmap(options: options)
        #expect((upright.width, upright.height, upright.orientation) == (200, 300, .up))
        options.appliesOrientation = false
        let told = try image.bitmap(options: options)
        #expect((told.width, told.height, told.orientation) == (300, 200, .right))
    }

    @Test("SDWebImageManagerTests 15 ThatOriginalQueryCacheTypeWork")
    func fromOriginal() async throws {
        let (url, bytes) = fixture.image("/a.png", size: 90)
        let manager = try thumbnails(30)
        #expect(await manager.failure(url, .fromCacheOnly)?.code == .notCached)
        try await manager.cache.store(bytes, forKey: url)
        let image = try await manager.loadImage(with: url, options: .fromCacheOnly)
        #expect(image.outcome == .hit && image.cacheType == .disk && image.info.width == 30)
        #expect(origin.requestCount() == 0)
    }

    @Test("SDWebImageManagerTests 18 ThatThumbnailLoadingCanUseFullSizeCache")
    func fullSizeCache() async throws {
        let (url, bytes) = fixture.image("/a.png", size: 90)
        let manager = try thumbnails(30)
        try await manager.cache.store(bytes, forKey: url, toDisk: true)
        let image = try await manager.loadImage(with: url)
        #expect(image.cacheType == .disk && image.info.width == 30 && origin.requestCount() == 0)
        let key = try key(url, 30)
        #expect(await manager.cache.diskImageExists(forKey: key))
    }

    @Test("SDWebImageManagerTests 19 ThatDifferentThumbnailLoadShouldCallbackDifferentSize")
    func differentSizes() async throws {
        let (url, _) = fixture.image("/a.png", size: 400)
        let manager = try fixture.manager()
        let sizes = await withTaskGroup(of: (Int, Int)?.self) { group in
            for side in 1...10 {
                group.addTask {
                    var options = ImageDecodeOptions()
                    options.thumbnailPixelSize = PixelSize(width: 20 * side, height: 20 * side)
                    let bitmap = try? await manager.loadImage(with: url).bitmap(options: options)
                    return bitmap.map { ($0.width, 20 * side) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(sizes.count == 10 && sizes.allSatisfy { $0 != nil && $0?.0 == $0?.1 })
        #expect(origin.requestCount() == 1)
    }

    @Test("SDWebImageManagerTests 21 ThatQueryOriginalDiskCacheFromThumbnailShouldNotWriteBackDiskCache")
    func originalStays() async throws {
        let (url, bytes) = fixture.image("/a.png", size: 90)
        let manager = try thumbnails(30)
        try await manager.cache.store(bytes, forKey: url)
        let path = try #require(manager.cache.cachePath(forKey: url))
        let thumbnail = try await manager.loadImage(with: url)
        #expect(readFile(path) == bytes && thumbnail.path != path)
        let written = readFile(try #require(thumbnail.path)), data = try thumbnail.data()
        #expect(written == data)
    }

    @Test
    func `an original is kept if it was asked for, and animations are transformed only if they were`() async throws {
        let (url, bytes) = fixture.image("/a.png", size: 90)
        let manager = try thumbnails(30, keepsOriginal: true)
        _ = try await manager.loadImage(with: url)
        let path = try #require(manager.cache.cachePath(forKey: url))
        #expect(readFile(path) == bytes)
        let gif = GeneratedImage.gif(seed: 1, width: 90, height: 90, frames: 3)
        origin.route("/b.gif", OriginResponse(body: gif))
        let kept = try await manager.loadImage(with: origin.url("/b.gif"))
        let data = try kept.data()
        #expect(kept.info.isAnimated && data == gif)
        origin.route("/c.gif", OriginResponse(body: gif))
        let still = try await manager.loadImage(with: origin.url("/c.gif"), options: .transformAnimatedImage)
        #expect(!still.info.isAnimated && still.info.width == 30 && still.info.format == .jpeg)
    }

    @Test
    func `a delegate transforms animations only if it was asked for`() async throws {
        origin.route("/b.gif", OriginResponse(body: GeneratedImage.gif(seed: 1, width: 9, height: 9, frames: 3)))
        let other = GeneratedImage.png(seed: 4, width: 4, height: 4)
        let delegate = TransformingDelegate { _ in other }
        for (options, width) in [([], 9), (.transformAnimatedImage, 4)] as [(WebImageOptions, Int)] {
            let manager = try fixture.manager()
            manager.delegate = delegate
            try await manager.cache.clearDisk()
            #expect(try await manager.loadImage(with: origin.url("/b.gif"), options: options).info.width == width)
        }
    }

    @Test("SDWebImageDownloaderTests 22 ThatCustomDecoderWorksForImageDownload")
    func customCoder() async throws {
        origin.route("/custom", OriginResponse(body: Array("XIMG 7x5".utf8)))
        let manager = try fixture.manager()
        #expect(await manager.failure(origin.url("/custom"))?.code == .badImageData)
        var downloads = ImageDownloader.Configuration()
        downloads.addressPolicy = await manager.downloader.configuration.addressPolicy
        let coder = ImageCoder(coders: ImageCodersManager([TextCoder()]))
        let custom = try ImageManager(cache: fixture.cache(), downloads: downloads, coder: coder)
        let image = try await custom.loadImage(with: origin.url("/custom"))
        #expect((image.info.width, image.info.height, image.info.level) == (7, 5, .decode))
        #expect(try image.bitmap(coder: coder).pixels.allSatisfy { $0 == 9 })
        #expect(try coder.encode(image.bitmap(coder: coder)) == Array("XIMG 7x5".utf8))
        let manager22 = try #require(coder.coders)
        for coder in manager22.coders { manager22.removeCoder(coder) }
        #expect(coder.failure(Array("XIMG 7x5".utf8), level: .decode) != nil)
    }
}

/// `XIMG 7x5`: a grey image of that size.
private final class TextCoder: ImageCoding {
    func canDecode(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.starts(with: "XIMG ".utf8) }

    func decodedImage(with bytes: UnsafeRawBufferPointer, options: ImageDecodeOptions) throws(WebImageError) -> Bitmap {
        let sides = String(decoding: bytes.dropFirst(5), as: UTF8.self).split(separator: "x").compactMap { Int($0) }
        guard sides.count == 2 else { throw WebImageError(.badImageData, "no size") }
        let pixels = [UInt8](repeating: 9, count: 3 * sides[0] * sides[1])
        return try Bitmap(width: sides[0], height: sides[1], hasAlpha: false, pixels: pixels)
    }

    func canEncode(to format: ImageFormat?) -> Bool { format == nil }

    func encodedData(with image: Bitmap, format: ImageFormat?) throws(WebImageError) -> [UInt8] {
        Array("XIMG \(image.width)x\(image.height)".utf8)
    }
}

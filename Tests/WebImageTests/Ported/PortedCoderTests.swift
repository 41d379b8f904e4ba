import Origin
import TestSupport
import Testing

@testable import WebImage

/// SDWebImage 5.21's tests of its decoder.
@Suite("Ported SDWebImageDecoderTests", .timeLimit(.minutes(5)))
struct PortedCoderTests {
    /// Builds of tests do not optimise the codecs.
    private let coder = {
        var limits = ImageCoder.Limits()
        limits.cpuNanoseconds = 60_000_000_000
        return ImageCoder(limits: limits)
    }()

    /// As large as the original's, and made once.
    private static let large = GeneratedImage.jpeg(seed: 6, width: 5250, height: 3450)

    @Test("SDWebImageDecoderTests 01 ThatDecodedImageWithNilImageReturnsNil")
    func nilImage() async throws {
        let error = coder.failure([], level: .decode)
        #expect(error?.code.rawValue == 1001)
        let folder = TemporaryDirectory()
        let cache = try ImageCache(directory: folder.path)
        let before = folder.contents()
        await #expect(throws: WebImageError.self) { try await cache.store([], forKey: "nil") }
        #expect(await cache.containsImage(forKey: "nil") == .none)
        #expect(folder.contents() == before)
    }

    @Test("SDWebImageDecoderTests 02 ThatDecodedImageWithImageWorksWithARegularJPGImage")
    func regularJPEG() throws {
        for progressive in [false, true] {
            let image = GeneratedImage.jpeg(seed: 2, width: 321, height: 123, progressive: progressive)
            let info = try coder.verify(image, level: .decode)
            #expect(info == ImageInfo(format: .jpeg, width: 321, height: 123, level: .decode, colorSpace: .rgb))
        }
    }

    @Test("SDWebImageDecoderTests 05 ThatDecodedImageWithImageWorksEvenWithMonochromeImage")
    func monochrome() throws {
        let image = GeneratedImage.jpeg(seed: 5, width: 217, height: 95, color: .gray)
        let info = try coder.verify(image, level: .decode)
        #expect(info == ImageInfo(format: .jpeg, width: 217, height: 95, level: .decode, colorSpace: .gray))
        // Its last rows count: without them it is no image.
        #expect(coder.failure(Array(image.dropLast(image.count / 4)), level: .decode)?.isIncompleteImage == true)
    }

    @Test("SDWebImageDecoderTests 03 ThatDecodedImageWithImageReturnsAnAnimatedImageUntouched")
    func animated() throws {
        for sample in [Sample.animatedGIF, .animatedPNG, .animatedWebP] {
            let info = try coder.verify(sample.bytes, level: .decode)
            #expect(!info.isForceDecoded)
            // Without an option nothing of it is transformed or encoded again.
            var variant = ImageVariant()
            variant.resize = PixelSize(width: 10, height: 10)
            let recipe = VariantRecipe(variant)
            let bytes = try sample.bytes.withUnsafeBytes { try recipe.bytes(of: $0, info, key: "a", coder: coder) }
            #expect(bytes == nil)
        }
    }

    @Test("SDWebImageDecoderTests 04 ThatDecodedImageWithImageReturnsAnImageWithAlphaChannel")
    func alpha() throws {
        let info = try coder.verify(Sample.alphaWebP.bytes, level: .decode)
        #expect(!info.isForceDecoded)
        #expect(try coder.decode(Sample.alphaWebP.bytes).hasAlpha)
        let opaque = try coder.verify(Sample.baselineJPEG.bytes, level: .decode)
        #expect(opaque.isForceDecoded)
    }

    @Test("SDWebImageDecoderTests 06 ThatDecodeAndScaleDownImageWorks")
    func scaleDown() throws {
        var options = ImageDecodeOptions()
        options.scaleDownLimitBytes = 60 << 20
        let bitmap = try coder.decode(Self.large, options: options)
        #expect(bitmap.width < 5250 && bitmap.width * bitmap.height <= (60 << 20) / 4)
        #expect(abs(Double(bitmap.width) / Double(bitmap.height) - 5250.0 / 3450) < 0.001)
    }

    @Test("SDWebImageDecoderTests 07 ThatDecodeAndScaleDownImageDoesNotScaleSmallerImage")
    func scaleDownSmall() throws {
        var options = ImageDecodeOptions()
        options.scaleDownLimitBytes = 60 << 20
        let image = GeneratedImage.jpeg(seed: 7, width: 1029, height: 1029)
        #expect(try coder.decode(image, options: options) == coder.decode(image))
        options.scaleDownLimitBytes = 1
        let point = try coder.decode(image, options: options)
        #expect((point.width, point.height) == (1, 1))
        // To the last row.
        options.scaleDownLimitBytes = 1028 * 1028 * 4
        let close = try coder.decode(image, options: options)
        #expect((close.width, close.height) == (1028, 1028) && close.decodedRows == 1028)
        #expect(Set(close.pixels.suffix(1028 * 3)).count > 1)
    }

    @Test("SDWebImageDecoderTests 08 ThatEncodeAlphaImageToJPGWithBackgroundColor")
    func background() throws {
        let clear = try Bitmap(width: 8, height: 8, hasAlpha: true, pixels: [UInt8](repeating: 0, count: 256))
        var options = ImageEncodeOptions()
        options.background = ImageColor(red: 0, green: 0, blue: 0)
        let black = try coder.decode(coder.encode(clear, as: .jpeg, options: options))
        #expect(!black.hasAlpha && black.pixels.allSatisfy { $0 < 4 })
        #expect(try coder.decode(coder.encode(clear, as: .jpeg)).pixels.allSatisfy { $0 > 251 })
    }

    @Test("SDWebImageDecoderTests 09 ThatJPGImageEncodeWithMaxFileSize")
    func maxFileSize() throws {
        let image = try coder.decode(GeneratedImage.jpeg(seed: 9, width: 800, height: 600, quality: 95))
        for limit in [8_000, 30_000, 100_000] {
            var options = ImageEncodeOptions()
            options.maxFileSize = limit
            let bytes = try coder.encode(image, as: .jpeg, options: options)
            #expect(bytes.count <= limit)
            #expect(try coder.verify(bytes, level: .decode).format == .jpeg)
        }
    }

    @Test("SDWebImageDecoderTests 22 ThatThumbnailDecodeCalculation")
    func thumbnail() throws {
        var options = ImageDecodeOptions()
        options.thumbnailPixelSize = PixelSize(width: 400, height: 300)
        let kept = try coder.decode(Self.large, options: options)
        #expect((kept.width, kept.height) == (400, 263))
        options.preservesAspectRatio = false
        let stretched = try coder.decode(Self.large, options: options)
        #expect((stretched.width, stretched.height) == (400, 300))
    }

    @Test("SDWebImageDecoderTests 23 ThatThumbnailEncodeCalculation")
    func maxPixelSize() throws {
        let image = try coder.decode(Self.large)
        var options = ImageEncodeOptions()
        options.maxPixelSize = PixelSize(width: 4000, height: 4000)
        let info = try coder.verify(coder.encode(image, as: .jpeg, options: options), level: .decode)
        #expect((info.width, info.height) == (4000, 2629))
    }

    @Test("SDWebImageDecoderTests 29 ThatJFIFDecodeOrientationShouldNotApplyTwice")
    func orientationOnce() throws {
        var picture = try coder.decode(GeneratedImage.png(seed: 29, width: 60, height: 40))
        picture.metadata.exif =
            Array("MM\0*".utf8) + [0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0]
        let stored = try coder.encode(picture, as: .jpeg)
        #expect(try coder.verify(stored, level: .decode).orientation == .right)
        var image = try coder.decode(stored)
        for _ in 0..<2 {
            #expect((image.width, image.height) == (40, 60) && image.orientation == .up)
            let again = try coder.encode(image, as: .jpeg)
            #expect(try coder.verify(again, level: .decode).orientation == .up)
            image = try coder.decode(again)
        }
    }
}

import Origin
import Testing

@testable import WebImage

/// SDWebImage 5.21's tests of its coders by format, of the decoded size, and of the helpers of its coder and scale.
///
/// Not here are those of formats that are not decoded: 13, 14, 16 and 21 (HEIC), 17 (PDF), 25 (BMP), 26 (raw), 31 (SVG), 32 to 34 (HDR); those
/// of Apple's own classes: 10, 20, 28 and 30; and 27, since animations are not encoded.
@Suite("Ported SDImageCoderTests", .timeLimit(.minutes(5)))
struct PortedCoderFormatTests {
    private let coder = ImageCoder()

    /// What SDWebImage's verifyCoder does with an animation: every frame, its canvas and its time, and the first one as a still image.
    private func check(_ sample: Sample, frames: Int, loops: Int) throws {
        let animation = try sample.bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
            try coder.decodeFrames(bytes)
        }
        #expect(animation.frames.count == frames && animation.loopCount == loops)
        #expect(animation.frames.allSatisfy { $0.duration > .zero && $0.image.width == Sample.width })
        let still = try coder.decode(sample.bytes)
        #expect((still.width, still.height) == (Sample.width, Sample.height))
        #expect(try coder.verify(sample.bytes, level: .decode).frameCount == frames)
        // The same in half the size.
        var options = ImageDecodeOptions()
        options.thumbnailPixelSize = PixelSize(width: Sample.width / 2, height: 0)
        let small = try sample.bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
            try coder.decodeFrames(bytes, options: options)
        }
        #expect(small.frames.count == frames && small.frames.allSatisfy { $0.image.width == Sample.width / 2 })
    }

    @Test("SDImageCoderTests 11 ThatAPNGPCoderWorks")
    func apng() throws { try check(.animatedPNG, frames: 2, loops: 0) }

    @Test("SDImageCoderTests 12 ThatGIFCoderWorks")
    func gif() throws { try check(.animatedGIF, frames: 3, loops: 0) }

    @Test("SDImageCoderTests 12 ThatGIFWithoutLoopCountPlayOnce")
    func gifOnce() throws {
        // Without the extension of Netscape.
        var bytes = Sample.animatedGIF.bytes
        let start = try #require(bytes.firstRange(of: Array("NETSCAPE2.0".utf8))?.lowerBound) - 3
        bytes.removeSubrange(start..<start + 19)
        let animation = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in try coder.decodeFrames(bytes) }
        #expect(animation.loopCount == 1 && animation.frames.count == 3)
    }

    @Test("SDImageCoderTests 15 ThatCodersManagerWorks")
    func manager() throws {
        final class OneColor: ImageCoding {
            let byte: UInt8
            init(byte: UInt8) { self.byte = byte }
            func canDecode(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.first == byte }
            func canEncode(to format: ImageFormat?) -> Bool { false }
            func encodedData(with image: Bitmap, format: ImageFormat?) throws(WebImageError) -> [UInt8] { [] }
            func decodedImage(
                with bytes: UnsafeRawBufferPointer, options: ImageDecodeOptions
            ) throws(WebImageError) -> Bitmap {
                try Bitmap(width: 1, height: 1, hasAlpha: false, pixels: [byte, byte, byte])
            }
        }
        let coders = ImageCodersManager()
        coders.addCoder(OneColor(byte: 1))
        coders.addCoder(OneColor(byte: 2))
        let coder = ImageCoder(coders: coders)
        #expect(try coder.decode([1, 9]).pixels == [1, 1, 1])
        #expect(try coder.decode([2, 9]).pixels == [2, 2, 2])
        // The others are this package's.
        #expect(try coder.decode(Sample.png.bytes).width == Sample.width)
        #expect(throws: WebImageError.self) { try coder.decode([3, 9]) }
    }

    @Test("SDImageCoderTests 18 ThatStaticWebPWorks")
    func webp() throws {
        let info = try coder.verify(Sample.lossyWebP.bytes, level: .decode)
        #expect(info.format == .webp && info.frameCount == 1)
        let bitmap = try coder.decode(Sample.lossyWebP.bytes)
        #expect((bitmap.width, bitmap.height) == (Sample.width, Sample.height))
        let again = try coder.decode(coder.encode(bitmap, as: .webp))
        #expect((again.width, again.height) == (Sample.width, Sample.height))
    }

    @Test("SDImageCoderTests 19 ThatAnimatedWebPWorks")
    func animatedWebP() throws { try check(.animatedWebP, frames: 2, loops: 0) }

    @Test("SDImageCoderTests 07 ThatDecodeAndScaleDownImageScaleSmallerBytes")
    func smallerBytes() throws {
        var options = ImageDecodeOptions()
        options.scaleDownLimitBytes = 2048
        let bitmap = try coder.decode(GeneratedImage.jpeg(seed: 7, width: 300, height: 200), options: options)
        #expect(bitmap.width * bitmap.height * 4 <= 2048 && bitmap.width * bitmap.height * 4 > 1500)
    }

    @Test("SDImageTransformerTests 20 CGImageCreateDecodedWithOrientation", arguments: ImageOrientation.allCases)
    func decodedWithOrientation(orientation: ImageOrientation) throws {
        let pixels: [UInt8] = [255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9, 8, 8, 8, 7, 7, 7]
        var bitmap = try Bitmap(width: 3, height: 2, hasAlpha: false, pixels: pixels)
        bitmap.orientation = orientation
        let upright = bitmap.upright
        #expect((upright.width, upright.height) == (orientation.swapsSides ? (2, 3) : (3, 2)))
        #expect(upright.orientation == .up && upright.pixels.sorted() == pixels.sorted())
        // Where the first pixel of the file is seen (EXIF 2.32, tag 0x112).
        let (x, y): (Int, Int) =
            switch orientation {
            case .up, .leftMirrored: (0, 0)
            case .upMirrored, .right: (upright.width - 1, 0)
            case .down, .rightMirrored: (upright.width - 1, upright.height - 1)
            case .downMirrored, .left: (0, upright.height - 1)
            }
        #expect(Array(upright.pixels[3 * (y * upright.width + x)..<3 * (y * upright.width + x) + 3]) == [255, 0, 0])
    }

    @Test("SDImageTransformerTests 22 CGImageCreateScaledWithSize")
    func scaledWithSize() throws {
        let image = try coder.decode(GeneratedImage.jpeg(seed: 7, width: 300, height: 200))
        for size in [PixelSize(width: 100, height: 100), PixelSize(width: 301, height: 7)] {
            let scaled = try image.scaled(to: size)
            #expect((scaled.width, scaled.height) == (size.width, size.height) && Set(scaled.pixels).count > 10)
        }
        let same = PixelSize(width: 300, height: 200)
        #expect(try image.scaled(to: same) == image)
    }

    @Test("SDUtilsTests SDScaledImageForKey")
    func scaledForKey() {
        #expect(ImageScale.factor(forKey: "1@2x.png") == 2 && ImageScale.factor(forKey: "1@3x.png") == 3)
        #expect(ImageScale.factor(forKey: "1.png") == 1)
        #expect(ImageScale.factor(forKey: "http://h/a@2x.png") == 2)
        #expect(ImageScale.factor(forKey: "http://h/a%402x.png") == 2)
        #expect(ImageScale.factor(forKey: "http://test@2xtest.com/a.png") == 1)
    }
}

import CReferenceCodec
import Origin
import Testing

@testable import WebImage

/// Images that are reduced while they are decoded (ScaleDownLargeImages), against the whole image reduced afterwards.
@Suite(.timeLimit(.minutes(5)))
struct ReducedDecodingTests {
    private let coder = ImageCoder()
    private static let size = PixelSize(width: 601, height: 397)

    enum Case: CaseIterable {
        case jpeg, grayJPEG, png, alphaPNG, interlacedPNG, animatedPNG, gif, animatedGIF, webp, alphaWebP, losslessWebP
        case animatedWebP, avif, animatedAVIF

        /// The greatest difference of a sample. libjpeg and libwebp reduce an image before the filter does.
        var bound: Int { self == .jpeg || self == .grayJPEG || self == .webp || self == .losslessWebP ? 24 : 0 }
    }

    private static let opaque = try? draw(alpha: false), transparent = try? draw(alpha: true)

    private static func picture(alpha: Bool) throws -> Bitmap { try #require(alpha ? transparent : opaque) }

    /// Smooth, so that two good filters agree on it.
    private static func draw(alpha: Bool) throws -> Bitmap {
        var pixels: [UInt8] = []
        for y in 0..<size.height {
            for x in 0..<size.width {
                pixels.append(UInt8(x * 255 / size.width))
                pixels.append(UInt8(y * 255 / size.height))
                pixels.append(UInt8((x + y) * 255 / 1000))
                if alpha { pixels.append(UInt8(255 - (x + 2 * y) * 255 / 1400)) }
            }
        }
        return try Bitmap(width: size.width, height: size.height, hasAlpha: alpha, pixels: pixels)
    }

    private func bytes(_ image: Case) throws -> [UInt8]? {
        let (width, height) = (Self.size.width, Self.size.height)
        return switch image {
        case .jpeg: try coder.encode(Self.picture(alpha: false), as: .jpeg, quality: 95)
        case .grayJPEG: GeneratedImage.jpeg(seed: 1, width: width, height: height, color: .gray)
        case .png: try coder.encode(Self.picture(alpha: false), as: .png)
        case .alphaPNG: try coder.encode(Self.picture(alpha: true), as: .png)
        case .interlacedPNG: GeneratedImage.png(seed: 1, width: width, height: height, interlaced: true)
        case .gif: GeneratedImage.gif(seed: 1, width: width, height: height)
        case .animatedGIF: GeneratedImage.gif(seed: 1, width: width, height: height, frames: 3)
        case .webp: try coder.encode(Self.picture(alpha: false), as: .webp, quality: 95)
        case .alphaWebP: try coder.encode(Self.picture(alpha: true), as: .webp, quality: 95)
        case .losslessWebP: GeneratedImage.webp(seed: 1, width: width, height: height)
        case .animatedPNG: Sample.animatedPNG.bytes
        case .animatedWebP: Sample.animatedWebP.bytes
        case .avif: ImageCoder.canDecode(.avif) ? Sample.avif.bytes : nil
        case .animatedAVIF: ImageCoder.canDecode(.avif) ? Sample.animatedAVIF.bytes : nil
        }
    }

    @Test(arguments: Case.allCases)
    func `an image reduced row by row is the whole image, reduced`(image: Case) throws {
        guard let bytes = try bytes(image) else { return }
        let whole = try coder.decode(bytes)
        for share in [2, 3, 7] {
            var options = ImageDecodeOptions()
            options.scaleDownLimitBytes = whole.width * whole.height * 4 / share / share
            let reduced = try coder.decode(bytes, options: options)
            let target = try #require(options.targetSize(of: PixelSize(width: whole.width, height: whole.height)))
            let expected = try whole.scaled(to: target)
            #expect((reduced.width, reduced.height) == (expected.width, expected.height))
            #expect((reduced.hasAlpha, reduced.decodedRows) == (whole.hasAlpha, expected.height))
            #expect(reduced.metadata == whole.metadata)
            #expect(Self.isNear(reduced.pixels, expected.pixels, image.bound))
        }
    }

    @Test(arguments: [ImageOrientation.up, .down, .left, .rightMirrored])
    func `a turned image has the proportions of what is seen`(orientation: ImageOrientation) throws {
        var picture = try Self.picture(alpha: false)
        picture.metadata.exif = Self.exif(orientation)
        let bytes = try coder.encode(picture, as: .png)
        var options = ImageDecodeOptions()
        options.thumbnailPixelSize = PixelSize(width: 100, height: 0)
        let reduced = try coder.decode(bytes, options: options)
        let whole = try coder.decode(bytes)
        #expect(
            reduced.width == 100 && reduced.height == Int((Double(whole.height * 100) / Double(whole.width)).rounded()))
        let expected = try whole.scaled(to: PixelSize(width: reduced.width, height: reduced.height))
        // The filter's weights are rounded from one end to the other.
        #expect(zip(reduced.pixels, expected.pixels).allSatisfy { abs(Int($0) - Int($1)) <= 1 })
    }

    @Test(arguments: Case.allCases)
    func `a part of an image gets its size row by row, too`(image: Case) throws {
        guard let bytes = try bytes(image) else { return }
        let whole = try coder.decode(bytes), size = PixelSize(width: whole.width, height: whole.height)
        let sizings = [
            // Reduced, cut only, and enlarged.
            ImageSizing(
                size, to: PixelSize(width: size.width / 3, height: size.height / 4), fit: .cover, scalesUp: false),
            ImageSizing(size, to: PixelSize(width: size.width, height: size.height / 3), fit: .cover, scalesUp: false),
            ImageSizing(
                size, to: PixelSize(width: size.width / 9, height: size.height + 9), fit: .cover, scalesUp: true),
        ]
        for sizing in sizings {
            var options = ImageDecodeOptions()
            options.sizing = sizing
            let made = try coder.decode(bytes, options: options), expected = try whole.resized(sizing, of: size)
            #expect((made.width, made.height) == (sizing.scaled.width, sizing.scaled.height))
            #expect((made.hasAlpha, made.decodedRows) == (whole.hasAlpha, made.height))
            #expect(made.metadata == whole.metadata)
            #expect(Self.isNear(made.pixels, expected.pixels, image.bound), "\(sizing)")
        }
    }

    /// Whether no sample differs by more than a bound, and all by a twelfth of it on average.
    private static func isNear(_ one: [UInt8], _ other: [UInt8], _ bound: Int) -> Bool {
        if bound == 0 { return one == other }
        let apart = zip(one, other).map { abs(Int($0) - Int($1)) }
        return apart.max() ?? 0 <= bound && apart.reduce(0, +) <= bound * apart.count / 12
    }

    @Test(arguments: ImageOrientation.allCases)
    func `of a turned image the part that is seen is taken`(orientation: ImageOrientation) throws {
        var picture = try Self.picture(alpha: false)
        picture.metadata.exif = Self.exif(orientation)
        for format in [ImageFormat.png, .jpeg] {
            let bytes = try coder.encode(picture, as: format, quality: 98)
            let whole = try coder.decode(bytes), size = PixelSize(width: whole.width, height: whole.height)
            var sizing = ImageSizing(size, exactly: PixelSize(width: 40, height: 30))
            (sizing.left, sizing.top, sizing.right, sizing.bottom) = (20.5, 100, 221, 311.25)
            var options = ImageDecodeOptions()
            options.sizing = sizing
            let made = try coder.decode(bytes, options: options), expected = try whole.resized(sizing, of: size)
            #expect(zip(made.pixels, expected.pixels).allSatisfy { abs(Int($0) - Int($1)) <= 4 }, "\(format)")
        }
    }

    /// With nothing but an orientation.
    private static func exif(_ orientation: ImageOrientation) -> [UInt8] {
        Array("II*\0".utf8) + [8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, orientation.rawValue, 0, 0, 0, 0, 0, 0, 0]
    }

    /// Of one row, over and over.
    private static func striped(_ width: Int, _ height: Int, alpha: Bool) throws -> Bitmap {
        let row = (0..<(alpha ? 4 : 3) * width).map { UInt8(truncatingIfNeeded: $0 / 97) }
        var pixels: [UInt8] = []
        for _ in 0..<height { pixels += row }
        return try Bitmap(width: width, height: height, hasAlpha: alpha, pixels: pixels)
    }

    /// Bytes that a decode may have allocated at a time, for each pixel of the image.
    @Test(
        .enabled(if: allocations_can_be_counted(), "a sanitizer has its own malloc"),
        arguments: [(Case.jpeg, 0.3), (.png, 0.3), (.alphaPNG, 0.3), (.gif, 1.4), (.webp, 0.6)])
    func `the whole image is never in memory`(image: Case, most: Double) throws {
        let (width, height) = (2400, 1600)
        let bytes: [UInt8] =
            switch image {
            case .gif: GeneratedImage.gif(seed: 1, width: width, height: height)
            case .jpeg, .webp:
                try coder.encode(Self.striped(width, height, alpha: false), as: image == .jpeg ? .jpeg : .webp)
            default: try coder.encode(Self.striped(width, height, alpha: image == .alphaPNG), as: .png)
            }
        var options = ImageDecodeOptions()
        options.scaleDownLimitBytes = 120 * 80 * 4
        allocations_start()
        let bitmap = try ImageCoder(sandbox: nil).decode(bytes, options: options)
        let peak = allocations_stop().peak
        #expect((bitmap.width, bitmap.height) == (120, 80))
        #expect(Double(peak) < most * Double(width * height), "\(peak) bytes")
    }

    @Test
    func `the memory of a reduced image is what the limit is compared with`() throws {
        // Whole it would take 36 MB at 4 bytes a pixel.
        let bytes = try coder.encode(Self.striped(3000, 3000, alpha: false), as: .png)
        var limits = ImageCoder.Limits()
        limits.maxMemory = 8 << 20
        let coder = ImageCoder(limits: limits, memory: DecodeMemory())
        #expect(throws: WebImageError.self) { try coder.decode(bytes) }
        var options = ImageDecodeOptions()
        options.scaleDownLimitBytes = 1 << 20
        let bitmap = try coder.decode(bytes, options: options)
        #expect((bitmap.width, bitmap.height) == (512, 512))
        #expect(coder.memory.peak < 8 << 20 && coder.memory.used == 0)
    }
}

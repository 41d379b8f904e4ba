import CReferenceCodec
import Origin
import Testing

@testable import WebImage

/// Pixels, against what was encoded and against the libraries' own decoders.
@Suite(.timeLimit(.minutes(5)))
struct DecodingTests {
    private let coder = ImageCoder()

    /// A picture whose eight turned copies all differ.
    private static func picture(_ width: Int, _ height: Int, alpha: Bool = false) throws -> Bitmap {
        var pixels: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                pixels += [UInt8(x * 255 / width), UInt8(y * 255 / height), UInt8((x * y) & 0xFF)]
                if alpha { pixels.append(UInt8((x + y) * 255 / (width + height))) }
            }
        }
        return try Bitmap(width: width, height: height, hasAlpha: alpha, pixels: pixels)
    }

    /// Little-endian EXIF data with nothing but an orientation.
    private static func exif(_ orientation: ImageOrientation) -> [UInt8] {
        Array("II*\0".utf8) + [8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, orientation.rawValue, 0, 0, 0, 0, 0, 0, 0]
    }

    private static func pixel(_ bitmap: Bitmap, _ x: Int, _ y: Int) -> [UInt8] {
        let start = (y * bitmap.width + x) * bitmap.channels
        return Array(bitmap.pixels[start..<start + bitmap.channels])
    }

    @Test(arguments: [false, true])
    func `a PNG gives the pixels that it was made of`(alpha: Bool) throws {
        let picture = try Self.picture(37, 23, alpha: alpha)
        let decoded = try coder.decode(try coder.encode(picture, as: .png))
        #expect(decoded == picture)
    }

    @Test
    func `every sample is decoded to 8-bit pixels of its size`() throws {
        for sample in Sample.allCases {
            let bitmap = try coder.decode(sample.bytes)
            #expect((bitmap.width, bitmap.height) == (Sample.width, Sample.height), "\(sample)")
            #expect(bitmap.hasAlpha == sample.info(level: .decode).hasAlpha, "\(sample)")
            #expect(bitmap.decodedRows == Sample.height, "\(sample)")
            #expect(Set(bitmap.pixels).count > 10, "\(sample) has a picture")
        }
    }

    @Test
    func `grey and 16-bit samples have the grey of their high byte`() throws {
        let bitmap = try coder.decode(Sample.gray16PNG.bytes)
        for start in stride(from: 0, to: bitmap.pixels.count, by: 3) {
            #expect(
                bitmap.pixels[start] == bitmap.pixels[start + 1] && bitmap.pixels[start] == bitmap.pixels[start + 2])
        }
    }

    @Test(arguments: ImageOrientation.allCases)
    func `an orientation is applied, or told`(orientation: ImageOrientation) throws {
        var stored = try Self.picture(40, 24)
        stored.metadata.exif = Self.exif(orientation)
        for format in [ImageFormat.jpeg, .png, .webp] {
            let bytes = try coder.encode(stored, as: format, quality: 100)
            let info = try coder.verify(bytes, level: .decode)
            #expect(info.orientation == orientation && (info.width, info.height) == (40, 24))
            #expect((info.displayWidth, info.displayHeight) == (orientation.swapsSides ? (24, 40) : (40, 24)))

            var options = ImageDecodeOptions()
            options.appliesOrientation = false
            let told = try coder.decode(bytes, options: options)
            #expect(told.orientation == orientation && (told.width, told.height) == (40, 24))
            #expect(told.metadata.exif == Self.exif(orientation))

            let turned = try coder.decode(bytes)
            #expect(turned.orientation == .up && turned == told.upright)
            #expect(turned.metadata.exif == Self.exif(.up))
            // Where the first pixel of the file goes (EXIF 2.32, 4.6.4: the row 0 and the column 0 of each value).
            let (right, bottom) = (turned.width - 1, turned.height - 1)
            let (x, y) =
                switch orientation {
                case .up, .leftMirrored: (0, 0)
                case .upMirrored, .right: (right, 0)
                case .down, .rightMirrored: (right, bottom)
                case .downMirrored, .left: (0, bottom)
                }
            #expect(Self.pixel(turned, x, y) == Self.pixel(told, 0, 0), "\(format) \(orientation)")
            // And its right neighbour: beside it, or below it.
            let step = orientation.swapsSides ? (0, y == 0 ? 1 : -1) : (x == 0 ? 1 : -1, 0)
            #expect(Self.pixel(turned, x + step.0, y + step.1) == Self.pixel(told, 1, 0), "\(format) \(orientation)")
        }
    }

    @Test("Metadata survives, in every format that is written")
    func metadata() throws {
        var picture = try Self.picture(16, 8, alpha: true)
        picture.metadata.exif = Self.exif(.up)
        // A profile as libpng wants it: its length, its signature, an RGB space and a tag, of data that takes some bytes when
        // compressed.
        var profile = [UInt8](repeating: 0, count: 144) + (0..<100).map { UInt8($0 * 37 & 0xFF) }
        profile.replaceSubrange(0..<4, with: [0, 0, 0, 244])
        profile.replaceSubrange(128..<144, with: [0, 0, 0, 1] + Array("desc".utf8) + [0, 0, 0, 144, 0, 0, 0, 100])
        profile[8] = 4
        profile.replaceSubrange(12..<24, with: "mntrRGB XYZ ".utf8)
        profile.replaceSubrange(36..<40, with: "acsp".utf8)
        profile.replaceSubrange(68..<80, with: [0, 0, 0xF6, 0xD6, 0, 1, 0, 0, 0, 0, 0xD3, 0x2D])
        picture.metadata.iccProfile = profile
        for format in [ImageFormat.jpeg, .png, .webp] {
            let decoded = try coder.decode(try coder.encode(picture, as: format))
            #expect(decoded.metadata == picture.metadata, "\(format)")
        }
    }

    @Test
    func `a JPEG is decoded at the smallest scale that is large enough`() throws {
        let jpeg = GeneratedImage.jpeg(seed: 3, width: 800, height: 400)
        for (minimum, size) in [
            (PixelSize(width: 100, height: 50), (100, 50)), (PixelSize(width: 101, height: 50), (200, 100)),
            (PixelSize(width: 100, height: 51), (200, 100)), (PixelSize(width: 400, height: 200), (400, 200)),
            (PixelSize(width: 401, height: 1), (800, 400)), (PixelSize(width: 9_999, height: 9_999), (800, 400)),
        ] {
            var options = ImageDecodeOptions()
            options.minimumSize = minimum
            let bitmap = try coder.decode(jpeg, options: options)
            #expect((bitmap.width, bitmap.height) == size, "\(minimum)")
        }
    }

    @Test(arguments: [Sample.animatedPNG, .animatedGIF, .compressedGIF, .animatedWebP])
    func `every frame of an animation has the whole canvas`(sample: Sample) throws {
        let animation = try sample.bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
            try coder.decodeFrames(bytes)
        }
        #expect(animation.frames.count == sample.frameCount)
        #expect(animation.loopCount == (sample == .compressedGIF ? 2 : 0))
        let duration: Duration = sample == .compressedGIF ? .milliseconds(70) : .milliseconds(100)
        for frame in animation.frames {
            #expect((frame.image.width, frame.image.height) == (Sample.width, Sample.height))
            #expect(frame.image.hasAlpha && frame.duration == duration)
        }
        // The first one is what a still decode gives.
        let still = try coder.decode(sample.bytes)
        let first = animation.frames[0].image
        let opaque = first.pixels.indices.filter { $0 % 4 != 3 }.map { first.pixels[$0] }
        #expect(still.pixels == opaque)
    }

    @Test
    func `of an animated PNG that is cut off there is the first image, and no byte behind the end is read`() throws {
        var options = ImageDecodeOptions()
        options.isPartial = true
        let png = Sample.animatedPNG.bytes
        func frames(_ bytes: [UInt8]) throws -> [AnimatedImage.Frame] {
            try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                try coder.decodeFrames(bytes, options: options)
            }.frames
        }
        #expect(try frames(png).count == Sample.animatedPNG.frameCount)
        let start = ChunkSurgery.offset(of: Array("IDAT".utf8), in: png)
        for count in start + 20..<png.count { #expect(try frames(Array(png[..<count])).count == 1, "\(count) bytes") }
        // The next chunk would be 2 GiB away.
        let far = Array(png[..<(start - 4)]) + [0x7F, 0xFF, 0xFF, 0xF0] + png[start..<start + 20]
        #expect(try frames(far).count == 1)
    }

    @Test
    func `a partial image shows the rows that are there`() throws {
        var options = ImageDecodeOptions()
        options.isPartial = true
        for bytes in [
            GeneratedImage.jpeg(seed: 5, width: 320, height: 240), GeneratedImage.png(seed: 5, width: 320, height: 240),
        ] {
            let whole = try coder.decode(bytes)
            var last = 0
            for share in [30, 50, 70, 90] {
                let bitmap = try coder.decode(Array(bytes[..<(bytes.count * share / 100)]), options: options)
                #expect((bitmap.width, bitmap.height) == (320, 240))
                #expect(bitmap.decodedRows > last && bitmap.decodedRows < 240)
                last = bitmap.decodedRows
                // libjpeg smooths the last rows with what it does not have.
                let sure = max(0, bitmap.decodedRows - 16) * 320 * 3
                #expect(bitmap.pixels[..<sure] == whole.pixels[..<sure])
            }
            #expect(try coder.decode(bytes, options: options) == whole)
        }
        // A progressive one is there as a whole, only coarser.
        let progressive = GeneratedImage.jpeg(seed: 5, width: 320, height: 240, progressive: true)
        let half = try coder.decode(Array(progressive[..<(progressive.count / 2)]), options: options)
        #expect(half.decodedRows == 240)
        #expect(throws: WebImageError.self) { try coder.decode(Array(progressive[..<(progressive.count / 2)])) }
    }

    @Test
    func `a decode keeps to the memory of an image`() throws {
        var limits = ImageCoder.Limits()
        limits.maxMemory = 2 << 20
        let small = ImageCoder(limits: limits)
        for sample in [
            GeneratedImage.png(seed: 1, width: 900, height: 900), GeneratedImage.jpeg(seed: 1, width: 900, height: 900),
            GeneratedImage.webp(seed: 1, width: 900, height: 900), GeneratedImage.gif(seed: 1, width: 900, height: 900),
        ] {
            #expect(throws: WebImageError.self) { try small.decode(sample) }
            #expect(try coder.decode(sample).width == 900)
        }
    }

    @Test
    func `a name tells the scale`() throws {
        #expect(ImageScale.factor(forKey: "https://x/a@2x.png") == 2)
        #expect(ImageScale.factor(forKey: "https://x/a%403x.png?b=1") == 3)
        #expect(ImageScale.factor(forKey: "https://x/a@4x.png") == 1)
        var options = ImageDecodeOptions()
        options.scale = ImageScale.factor(forKey: "a@3x.png")
        #expect(try coder.decode(Sample.png.bytes, options: options).scale == 3)
    }
}

extension ImageCoder {
    /// The pixels of an array.
    func decode(_ bytes: [UInt8], options: ImageDecodeOptions = ImageDecodeOptions()) throws(WebImageError) -> Bitmap {
        try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in try decode(bytes, options: options) }
    }
}

import CImageCodec
import Origin
import Testing
import WebImage

@Suite(.timeLimit(.minutes(5)))
struct CodecLimitTests {
    private func refusal(
        _ bytes: [UInt8], _ level: ValidationLevel, _ change: (inout ImageCoder.Limits) -> Void = { _ in }
    ) -> String {
        var limits = ImageCoder.Limits()
        change(&limits)
        let error = ImageCoder(limits: limits).failure(bytes, level: level)
        // Nothing is known to be wrong with the image.
        #expect(error == nil || error?.code == .tooLarge)
        #expect(error?.isIncompleteImage != true)
        return error?.message ?? "accepted"
    }

    @Test
    func `a header of 501 megapixels is refused before anything is decoded`() {
        let limit = "25050 x 20000 pixels, the limit is 500000000 in all (--max-pixels raises it)"
        for level in [ValidationLevel.header, .structure, .decode] {
            #expect(refusal(ChunkSurgery.pngHeader(width: 25_050, height: 20_000), level) == limit)
        }
        #expect(
            refusal(ChunkSurgery.pngHeader(width: 25_050, height: 20_000), .header) { $0.maxPixels *= 2 } == "accepted")
        let longest = Int(Int32.max)
        #expect(refusal(ChunkSurgery.pngHeader(width: longest, height: 1), .header).contains("in all"))
        #expect(
            refusal(ChunkSurgery.pngHeader(width: longest, height: 1), .header) { $0.maxPixels = longest } == "accepted"
        )
        let none = ImageCoder().failure(ChunkSurgery.pngHeader(width: 0, height: 1), level: .header)
        #expect(none?.code == .badImageData && none?.message == "0 x 1 pixels")
    }

    /// Past 100 million pixels, the old limit of all formats, and past 32,768 a side.
    @Test(arguments: [(12_000, 9_000), (800, 40_000), (50_000, 1_500)])
    func `large images that are checked row by row are images`(width: Int, height: Int) throws {
        var limits = ImageCoder.Limits()
        limits.maxMemory = 256 << 20
        limits.cpuNanoseconds = 1 << 60
        let coder = ImageCoder(limits: limits)
        for bytes in [
            LargeImage.jpeg(width: width, height: height), LargeImage.png(width: width, height: height),
            LargeImage.gif(width: width, height: height),
        ] {
            let info = try coder.verify(bytes, level: .decode)
            #expect(info.width == width && info.height == height && info.frameCount == 1 && info.warnings == [])
        }
    }

    @Test
    func `what a library keeps as a whole has a limit of its own`() {
        let whole = Sample.width * Sample.height
        let levels = [ValidationLevel.header, .structure, .decode]
        let progressive = ChunkSurgery.withEmptyDNL(Sample.progressiveJPEG.bytes)
        for (bytes, levels, kind) in [
            (Sample.webp.bytes, levels, "WebP"), (Sample.alphaWebP.bytes, levels, "WebP"),
            (Sample.animatedWebP.bytes, levels, "WebP"), (progressive, [.decode], "progressive JPEG"),
        ] {
            for level in levels {
                let text = refusal(bytes, level) { $0.maxWholePixels = whole - 1 }
                #expect(
                    text.hasSuffix("the limit of a \(kind) is 1188 (--validate none takes it unchecked)"), "\(text)")
                #expect(refusal(bytes, level) { $0.maxWholePixels = whole } == "accepted")
            }
        }
        #expect(refusal(progressive, .structure) { $0.maxWholePixels = 1 } == "accepted")
        for sample in [Sample.baselineJPEG, .progressiveJPEG, .png, .gif, .lossyWebP] {
            for level in levels { #expect(refusal(sample.bytes, level) { $0.maxWholePixels = 1 } == "accepted") }
        }
    }

    /// A word for each block, where libjpeg keeps 128 bytes.
    @Test
    func `a progressive JPEG that is proved needs little memory`() {
        let jpeg = GeneratedImage.jpeg(seed: 1, width: 2_400, height: 1_600, quality: 30, progressive: true)
        let limit = { (limits: inout ImageCoder.Limits) in limits.maxMemory = 2 << 20 }
        #expect(refusal(jpeg, .decode, limit) == "accepted")
        #expect(refusal(ChunkSurgery.withEmptyDNL(jpeg), .decode, limit).contains("MiB to decode"))
    }

    @Test(arguments: [Sample.baselineJPEG, .png, .gif, .webp, .lossyWebP])
    func `sides and pixels are limited in every format`(sample: Sample) {
        for level in [ValidationLevel.header, .structure] {
            #expect(refusal(sample.bytes, level) { $0.maxDimension = Sample.width - 1 }.contains("a side"))
            #expect(refusal(sample.bytes, level) { $0.maxPixels = Sample.width * Sample.height - 1 }.contains("in all"))
            #expect(refusal(sample.bytes, level) { $0.maxPixels = Sample.width * Sample.height } == "accepted")
        }
    }

    @Test(arguments: [ValidationLevel.structure, .decode])
    func `a JPEG of 5,006 scans is refused`(level: ValidationLevel) {
        let jpeg = Sample.progressiveJPEG.bytes
        let lastScan = ChunkSurgery.lastOffset(of: [0xFF, 0xDA], in: jpeg)
        let scan = Array(jpeg[lastScan..<(jpeg.count - 2)])
        let bomb = Array(jpeg.dropLast(2)) + (0..<5_000).flatMap { _ in scan } + [0xFF, 0xD9]
        #expect(refusal(bomb, level) == "JPEG with more than 100 scans (--validate none takes it unchecked)")
    }

    @Test
    func `frames are limited in every animation`() {
        for sample in [Sample.animatedGIF, .compressedGIF, .animatedWebP, .animatedPNG] {
            let (bytes, frames) = (sample.bytes, sample.frameCount)
            #expect(refusal(bytes, .structure) == "accepted")
            #expect(refusal(bytes, .structure) { $0.maxFrames = frames - 1 }.contains("frames"))
            #expect(refusal(bytes, .structure) { $0.maxFrames = frames } == "accepted")
        }
    }

    @Test
    func `an animation of thousands of frames on a large screen is one if its data are few`() throws {
        // 400 million pixels of screens, and 3,000 of frames.
        let gif = LargeImage.animation(frames: 3_000, width: 1920, height: 1080)
        #expect(try ImageCoder().verify(gif, level: .decode).frameCount == 3_000)
        let many = LargeImage.animation(frames: 10_001, width: 4, height: 4)
        #expect(refusal(many, .decode) == "GIF with more than 10000 frames (--validate none takes it unchecked)")
    }

    @Test
    func `time is granted for the pixels that the bytes can have data for`() {
        var limits = image_codec_limits()
        (limits.cpu_nanoseconds, limits.cpu_nanoseconds_per_pixel) = (2_000_000_000, 20)
        #expect(image_codec_cpu_limit(&limits, 4_600, 0) == 2_000_092_000)
        #expect(image_codec_cpu_limit(&limits, 4_600, 4_600_000) == 2_092_000_000)
        #expect(image_codec_cpu_limit(&limits, 4_600, 200 * 1920 * 1080) == 2_092_000_000)
        #expect(image_codec_cpu_limit(&limits, 200_000_000, 500_000_000) == 12_000_000_000)
        // Noise: a byte counts as a pixel.
        #expect(image_codec_cpu_limit(&limits, 1_000_000_000, 500_000_000) == 22_000_000_000)
    }

    @Test
    func `a GIF frame larger than its screen counts with its own size`() {
        var gif = Sample.gif.bytes
        gif.replaceSubrange(6..<10, with: [1, 0, 1, 0])
        #expect(refusal(gif, .structure) == "accepted")
        #expect(refusal(gif, .structure) { $0.maxPixels = 1 }.contains("41 x 29"))
    }

    @Test
    func `a decode that takes too long ends`() {
        let noTime = { (limits: inout ImageCoder.Limits) in
            limits.cpuNanoseconds = 0
            limits.cpuNanosecondsPerPixel = 0
        }
        for bytes in [
            GeneratedImage.jpeg(seed: 1, width: 800, height: 800), GeneratedImage.png(seed: 1, width: 800, height: 800),
        ] {
            #expect(refusal(bytes, .decode) == "accepted")
            // Or to read, if it is long enough for a look at the clock before.
            let refusal = refusal(bytes, .decode, noTime)
            #expect(
                refusal.hasSuffix("takes too long to decode, more than 0.0 s (--validate structure takes it undecoded)")
                    || refusal.hasSuffix("takes too long to read, more than 0.0 s (--validate none takes it unchecked)")
            )
        }
    }

    @Test
    func `a progressive JPEG that needs more memory than allowed is refused`() {
        let jpeg = ChunkSurgery.withEmptyDNL(
            GeneratedImage.jpeg(seed: 1, width: 800, height: 800, progressive: true))
        #expect(refusal(jpeg, .decode) == "accepted")
        var limits = ImageCoder.Limits()
        limits.maxMemory = 1 << 20
        let error = ImageCoder(limits: limits).failure(jpeg, level: .decode)
        #expect(error?.code == .tooLarge)
        #expect(
            error?.message
                == "800 x 800 pixels that take 1.9 MiB to decode, the limit is 1.0 MiB (--max-decode-memory raises it)")
        // Its structure costs nothing.
        #expect(ImageCoder(limits: limits).failure(jpeg, level: .structure) == nil)
    }

    /// What Pillow 13 opens them as: what the screen and the first frame cover.
    @Test
    func `the size of a GIF includes its first frame`() throws {
        typealias Box = (x: Int, y: Int, width: Int, height: Int)
        let cases: [(screen: (Int, Int), frames: [Box], size: (Int, Int))] = [
            ((4, 4), [(3, 2, 4, 4)], (7, 6)), ((0, 0), [(0, 0, 5, 4)], (5, 4)), ((0, 0), [(3, 2, 5, 4)], (8, 6)),
            ((0, 9), [(0, 0, 5, 4)], (5, 9)), ((9, 9), [(1, 1, 2, 2)], (9, 9)), ((6, 4), [(0, 0, 4, 6)], (6, 6)),
            ((4, 4), [(0, 0, 2, 2), (3, 3, 4, 4)], (4, 4)),
        ]
        for (screen, boxes, size) in cases {
            let frames = boxes.map { LargeImage.frame($0.x, $0.y, $0.width, $0.height) }
            let gif = LargeImage.gif(width: screen.0, height: screen.1, frames: frames)
            for level in [ValidationLevel.header, .structure, .decode] {
                let info = try ImageCoder().verify(gif, level: level)
                #expect((info.width, info.height) == size, "\(level)")
            }
            let arrived = Array(gif.prefix(19 + 10))
            let header = try arrived.span.withUnsafeBytes { try ImageCoder().inspectHeader($0) }
            #expect(header.map { [$0.width, $0.height] } == [size.0, size.1])
            let early = try Array(gif.prefix(19 + 9)).span.withUnsafeBytes { try ImageCoder().inspectHeader($0) }
            #expect(early == nil)
            let bitmap = try ImageCoder().decode(gif)
            #expect((bitmap.width, bitmap.height) == size)
            // The first colour, black, where the frame is; around it nothing is.
            let (box, channels) = (boxes[0], bitmap.hasAlpha ? 4 : 3)
            for y in 0..<size.1 {
                for x in 0..<size.0 {
                    let isInside = box.x..<box.x + box.width ~= x && box.y..<box.y + box.height ~= y
                    let pixel = bitmap.pixels[(y * size.0 + x) * channels..<(y * size.0 + x + 1) * channels]
                    #expect(Array(pixel) == (channels == 3 ? [0, 0, 0] : [0, 0, 0, isInside ? 255 : 0]))
                }
            }
        }
        let none = LargeImage.gif(width: 0, height: 0, frames: [])
        #expect(ImageCoder().failure(none, level: .structure)?.message == "GIF without an image")
    }
}

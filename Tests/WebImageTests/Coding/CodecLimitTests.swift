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
        #expect(error == nil || error?.code == .badImageData || error?.message.contains("MiB to decode") == true)
        #expect(error?.isIncompleteImage != true)
        return error?.message ?? "accepted"
    }

    @Test
    func `a header of 400 megapixels is refused before anything is decoded`() {
        #expect(refusal(ChunkSurgery.pngHeader(width: 20_000, height: 20_000), .decode).contains("100000000 in all"))
        #expect(refusal(ChunkSurgery.pngHeader(width: 40_000, height: 1), .header).contains("32768 a side"))
        #expect(refusal(ChunkSurgery.pngHeader(width: 0, height: 1), .header).contains("0 x 1"))
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
        #expect(refusal(bomb, level) == "JPEG with more than 100 scans")
    }

    @Test
    func `frames and their pixels are limited in every animation`() {
        let canvas = Sample.width * Sample.height
        for sample in [Sample.animatedGIF, .compressedGIF, .animatedWebP, .animatedPNG] {
            let (bytes, frames) = (sample.bytes, sample.frameCount)
            #expect(refusal(bytes, .structure) == "accepted")
            #expect(refusal(bytes, .structure) { $0.maxFrames = frames - 1 }.contains("frames"))
            #expect(refusal(bytes, .structure) { $0.maxFramePixels = frames * canvas - 1 }.contains("frames"))
            #expect(refusal(bytes, .structure) { $0.maxFramePixels = frames * canvas } == "accepted")
        }
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
            #expect(refusal(bytes, .decode, noTime).contains("takes too long"))
        }
    }

    @Test
    func `a progressive JPEG that needs more memory than allowed is refused`() {
        let jpeg = GeneratedImage.jpeg(seed: 1, width: 800, height: 800, progressive: true)
        #expect(refusal(jpeg, .decode) == "accepted")
        var limits = ImageCoder.Limits()
        limits.maxMemory = 1 << 20
        let error = ImageCoder(limits: limits).failure(jpeg, level: .decode)
        #expect(error?.code == .tooLarge)
        #expect(error?.message == "800 x 800 pixels that take 1.9 MiB to decode, the limit is 1.0 MiB")
        // Its structure costs nothing.
        #expect(ImageCoder(limits: limits).failure(jpeg, level: .structure) == nil)
    }
}

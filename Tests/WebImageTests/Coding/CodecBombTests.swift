import CImageCodec
import CReferenceCodec
import Origin
import Testing
import WebImage

/// Small PNG files that would be expensive. What they cost is counted, not timed.
@Suite(.timeLimit(.minutes(5)))
struct CodecBombTests {
    private let coder = ImageCoder()
    /// What libpng and zlib take for a small image, with room to spare.
    private static let small = 256 << 10

    /// The verdict of a decode, and what the thread allocated for it.
    private func cost(
        _ bytes: [UInt8], _ limits: ImageCoder.Limits = ImageCoder.Limits()
    ) -> (refusal: String?, warnings: [String], allocated: counted_allocations) {
        let coder = ImageCoder(limits: limits, sandbox: nil)
        allocations_start()
        let result = Result { () throws(WebImageError) in try coder.verify(bytes, level: .decode) }
        let allocated = allocations_stop()
        switch result {
        case .success(let info): return (nil, info.warnings, allocated)
        case .failure(let error):
            // A limit is not damage.
            #expect(error.code == (error.message.contains("--") ? .tooLarge : .badImageData))
            return (error.message, [], allocated)
        }
    }

    /// A zlib stream of so many zeros, a thousandth of their length.
    static func zeros(_ count: Int) -> [UInt8] {
        let bytes = [UInt8](repeating: 0, count: count)
        return [UInt8](unsafeUninitializedCapacity: count / 500 + 1_000) { buffer, length in
            length = reference_compress(bytes, count, buffer.baseAddress, buffer.count)
        }
    }

    private static func png(_ data: [UInt8], width: Int = 1, height: Int = 1) -> [UInt8] {
        ChunkSurgery.pngHeader(width: width, height: height) + ChunkSurgery.pngChunk("IDAT", data)
            + ChunkSurgery.pngChunk("IEND", [])
    }

    @Test(arguments: ["zTXt", "iTXt"], ["IDAT", "IEND"])
    func `compressed text is not inflated`(name: String, place: String) {
        let head: [UInt8] = name == "zTXt" ? [0x61, 0, 0] : [0x61, 0, 1, 0, 0, 0]
        let text = ChunkSurgery.pngChunk(name, head + Self.zeros(7_900_000))
        let texts = (0..<126).reduce(into: [UInt8]()) { texts, _ in texts += text }
        let bomb = ChunkSurgery.insert(texts, before: place, in: Sample.png.bytes)
        #expect(bomb.count < 1_000_000 * 21 / 20)
        let (refusal, warnings, allocated) = cost(bomb)
        #expect(refusal == nil && warnings.isEmpty)
        #expect(allocated.total < Self.small, "\(allocated)")
    }

    @Test
    func `hundreds of ancillary chunks take no memory`() {
        let chunks: [UInt8] = ["tEXt", "zTXt", "iTXt", "eXIf", "sPLT", "prVt"].flatMap {
            ChunkSurgery.pngChunk($0, Array("a\0".utf8) + [UInt8](repeating: 8, count: 1_000))
        }
        let many = (0..<100).reduce(into: [UInt8]()) { many, _ in many += chunks }
        let (refusal, _, allocated) = cost(ChunkSurgery.insert(many, before: "IDAT", in: Sample.png.bytes))
        #expect(refusal == nil)
        #expect(allocated.total < Self.small, "\(allocated)")
    }

    @Test
    func `image data that goes on behind the last row is refused before it is inflated`() {
        // A pixel, and behind it 80 MB of zeros: 78 KB.
        let (refusal, _, allocated) = cost(Self.png(Self.zeros(80_000_000)))
        #expect(refusal?.hasPrefix("PNG with image data") == true, "\(refusal ?? "accepted")")
        #expect(allocated.total < Self.small, "\(allocated)")
        // A row or two too many are no bomb: the image is whole, as every other decoder says.
        let surplus = cost(Self.png(Self.zeros(1_000)))
        #expect(surplus.refusal == nil && surplus.warnings == ["IDAT: Too much image data"])
        // The stream's sum is still compared there.
        var wrongSum = Self.zeros(1_000)
        wrongSum[wrongSum.count - 1] ^= 1
        #expect(cost(Self.png(wrongSum)).refusal == "IDAT: incorrect data check")
    }

    @Test
    func `the processor time is asked for while image data is read`() {
        var limits = ImageCoder.Limits()
        limits.cpuNanoseconds = 0
        limits.cpuNanosecondsPerPixel = 0
        // One row, which is not the place to ask: 98 KB of noise.
        let row = GeneratedImage.png(seed: 1, width: 32_768, height: 1)
        #expect(cost(row).refusal == nil)
        #expect(cost(row, limits).refusal?.hasPrefix("PNG takes too long to decode") == true)
    }

    @Test
    func `what libpng allocates counts against the memory an image may take`() throws {
        let wide = GeneratedImage.png(seed: 1, width: 32_768, height: 1, color: .rgba, depth: 16)
        let (refusal, _, allocated) = cost(wide)
        #expect(refusal == nil)
        var limits = ImageCoder.Limits()
        limits.maxMemory = 300_000
        #expect(cost(wide, limits).refusal?.contains("MiB to decode") == true)
        // Past that check the decoder itself keeps to the limit.
        let bounds = image_codec_limits(
            max_dimension: 40_000, max_pixels: 1 << 30, max_whole_pixels: 1 << 30, max_scans: 1, max_frames: 1,
            max_memory: 300_000, cpu_nanoseconds: 1 << 40, cpu_nanoseconds_per_pixel: 0)
        var result = image_codec_result()
        wide.withUnsafeBufferPointer { wide in
            var request = image_codec_request()
            request.format = Int32(IMAGE_CODEC_PNG.rawValue)
            request.task = Int32(IMAGE_CODEC_STRUCTURE.rawValue)
            (request.bytes, request.count, request.limits) = (wide.baseAddress, wide.count, bounds)
            image_codec_run(&request, &result)
        }
        #expect(result.status == IMAGE_CODEC_WHOLE.rawValue && result.memory > 300_000)
        allocations_start()
        wide.withUnsafeBufferPointer { wide in
            var request = image_codec_request()
            request.format = Int32(IMAGE_CODEC_PNG.rawValue)
            request.task = Int32(IMAGE_CODEC_CHECK.rawValue)
            (request.bytes, request.count, request.limits) = (wide.baseAddress, wide.count, bounds)
            image_codec_run(&request, &result)
        }
        let bounded = allocations_stop()
        #expect(result.status == IMAGE_CODEC_OVER_MEMORY.rawValue)
        #expect(
            String(cString: image_codec_message(&result))
                == "PNG takes more than 300000 bytes to decode (--max-decode-memory raises it)")
        guard allocations_can_be_counted() else { return }
        #expect(allocated.peak > 300_000)
        #expect(bounded.peak < 310_000)
    }

    @Test(.enabled(if: ImageCoder.canDecode(.webp), "libwebp is not installed"))
    func `the prefix codes of a lossless WebP count against the memory an image may take`() throws {
        // 18 KB, and 64 KB of pixels.
        let webp = WebPSamples.manyCodes(side: 256)
        #expect(webp.count < 20_000)
        let (refusal, _, allocated) = cost(webp)
        #expect(refusal == nil)
        // More than libwebp takes of it, and also where it is an alpha channel, of a lossy image whose header gives that size.
        var lossy = Array(Sample.lossyWebP.bytes[12...])
        lossy.replaceSubrange(14..<18, with: [0, 1, 0, 1])
        let alpha = WebPSamples.riff(
            WebPSamples.chunk("VP8X", [0x10, 0, 0, 0, 255, 0, 0, 255, 0, 0])
                + WebPSamples.chunk("ALPH", [1] + webp[25...]) + lossy)
        var limits = ImageCoder.Limits()
        for file in [webp, alpha] {
            limits.maxMemory = 40_000_000
            #expect(cost(file, limits).refusal?.contains("MiB to decode") == true)
            limits.maxMemory = 60_000_000
            #expect(cost(file, limits).refusal?.contains("MiB to decode") != true)
        }
        #expect(allocated.total < 60_000_000, "\(allocated)")
        // What encoders write has few.
        for sample in [Sample.webp, .alphaWebP] {
            limits.maxMemory = 2 << 20
            #expect(cost(sample.bytes, limits).refusal == nil)
        }
    }
}

import CImageCodec
import Testing

@testable import WebImage

/// A file has one budget, whatever it is made of: processor time, steps, chunks, warnings. What a call cost is asserted in its own processor time
/// and in counts, not by a clock on the wall.
@Suite("One budget for a file", .timeLimit(.minutes(5)))
struct CodecBudgetTests {
    private struct Cost {
        var status: UInt32
        var message: String
        var seconds: Double
        var warnings: (kept: Int, seen: Int)
    }

    /// Tenths of a second that a call may go on behind its budget: what is between two looks at the clock.
    private static let slack = 0.1

    /// * `budget`: seconds of processor time; nil: as a worker has it.
    /// * `spent`: what earlier calls took.
    private func run(
        _ task: image_codec_task, _ format: image_codec_format, _ bytes: [UInt8], budget: Double? = nil,
        spent: Double = 0
    ) -> Cost {
        var limits = ImageCodec(limits: ImageCoder.Limits()).bounds
        if let budget { (limits.cpu_nanoseconds, limits.cpu_nanoseconds_per_pixel) = (UInt64(budget * 1e9), 0) }
        var result = image_codec_result()
        bytes.withUnsafeBufferPointer { bytes in
            var request = image_codec_request()
            (request.format, request.task) = (Int32(format.rawValue), Int32(task.rawValue))
            (request.bytes, request.count, request.limits) = (bytes.baseAddress, bytes.count, limits)
            (request.frames, request.spent) = (1, UInt64(spent * 1e9))
            image_codec_run(&request, &result)
        }
        defer { image_codec_release_result(&result) }
        return Cost(
            status: UInt32(bitPattern: result.status), message: String(cString: image_codec_message(&result)),
            seconds: Double(result.spent) / 1e9,
            warnings: (Int(result.warning_count), Int(result.warnings_seen)))
    }

    private static func repeated(_ part: [UInt8], _ count: Int) -> [UInt8] {
        var all: [UInt8] = []
        all.reserveCapacity(part.count * count)
        for _ in 0..<count { all += part }
        return all
    }

    /// Files of which our own readers walk every part: millions of the smallest there are.
    private static func parts(_ name: String) -> (image_codec_format, [UInt8]) {
        let (jpeg, png, gif) = (Sample.baselineJPEG.bytes, Sample.png.bytes, Sample.gif.bytes)
        let screen = 13 + (gif[10] & 0x80 == 0 ? 0 : 6 << Int(gif[10] & 7))
        return switch name {
        case "stray bytes": (IMAGE_CODEC_JPEG, jpeg[..<2] + repeated([0, 0xFF, 0x01], 2_000_000) + jpeg[2...])
        case "comments": (IMAGE_CODEC_JPEG, jpeg[..<2] + repeated([0xFF, 0xFE, 0, 2], 2_000_000) + jpeg[2...])
        case "chunks":
            (
                IMAGE_CODEC_PNG,
                ChunkSurgery.insert(repeated(ChunkSurgery.pngChunk("teXt", []), 1_000_000), before: "IDAT", in: png)
            )
        case "damaged chunks":
            (
                IMAGE_CODEC_PNG,
                ChunkSurgery.insert(
                    repeated([0, 0, 0, 0] + Array("teXt".utf8) + [1, 2, 3, 4], 1_000_000), before: "IDAT", in: png)
            )
        case "extensions":
            (IMAGE_CODEC_GIF, gif[..<screen] + repeated([0x21, 0xFE, 0], 3_000_000) + gif[screen...])
        default:
            (IMAGE_CODEC_GIF, gif[..<screen] + [0x21, 0xFE] + repeated([1, 7], 4_000_000) + [0] + gif[screen...])
        }
    }

    @Test(
        "Millions of markers, chunks and blocks end within the time of the file, however short that is",
        arguments: ["stray bytes", "comments", "chunks", "damaged chunks", "extensions", "blocks"])
    func parts(_ name: String) {
        let (format, bytes) = Self.parts(name)
        let whole = run(IMAGE_CODEC_STRUCTURE, format, bytes)
        #expect(whole.status == IMAGE_CODEC_WHOLE.rawValue && whole.seconds < 1, "\(whole)")
        // Warnings are counted, and eight of them put into words.
        #expect(whole.warnings.kept <= 8 && whole.warnings.seen >= whole.warnings.kept)
        if name == "stray bytes" { #expect(whole.warnings == (8, 2_000_000)) }
        if name == "damaged chunks" { #expect(whole.warnings == (8, 1_000_000)) }
        for budget in [0, 0.001] {
            let cut = run(IMAGE_CODEC_STRUCTURE, format, bytes, budget: budget)
            #expect(cut.status == IMAGE_CODEC_OVER_DECODING.rawValue, "\(cut)")
            #expect(cut.message.contains("takes too long to read") && cut.message.contains("--validate none"))
            #expect(cut.seconds < budget + Self.slack, "\(cut)")
        }
    }

    @Test("What earlier calls for the same file took counts, in this process and in the child")
    func spent() throws {
        for (format, bytes) in [
            (IMAGE_CODEC_JPEG, Sample.baselineJPEG.bytes), (IMAGE_CODEC_PNG, Sample.png.bytes),
            (IMAGE_CODEC_GIF, Sample.gif.bytes),
        ] {
            #expect(run(IMAGE_CODEC_CHECK, format, bytes).status == IMAGE_CODEC_WHOLE.rawValue)
        }
        let late = run(IMAGE_CODEC_CHECK, IMAGE_CODEC_GIF, Sample.gif.bytes, spent: 60)
        #expect(late.status == IMAGE_CODEC_OVER_DECODING.rawValue && late.seconds < Self.slack)
        let (format, bytes) = Self.parts("chunks")
        let slow = run(IMAGE_CODEC_STRUCTURE, format, bytes, spent: 60)
        #expect(slow.status == IMAGE_CODEC_OVER_DECODING.rawValue && slow.seconds < Self.slack)
    }

    // MARK: Animations

    private static func frameControl(_ sequence: Int) -> [UInt8] {
        ChunkSurgery.pngChunk(
            "fcTL",
            ChunkSurgery.bigEndian(sequence) + ChunkSurgery.bigEndian(1) + ChunkSurgery.bigEndian(1)
                + [UInt8](repeating: 0, count: 8) + [0, 1, 0, 100, 0, 0])
    }

    /// Frames of one pixel with this data, behind chunks of an image of one pixel.
    private static func animation(_ count: Int, _ data: [UInt8], behind chunks: [UInt8] = []) -> [UInt8] {
        let pixel = CodecBombTests.zeros(4)
        var png = ChunkSurgery.pngHeader(width: 1, height: 1) + chunks
        png += ChunkSurgery.pngChunk("acTL", ChunkSurgery.bigEndian(count) + ChunkSurgery.bigEndian(0))
        png += frameControl(0) + ChunkSurgery.pngChunk("IDAT", pixel)
        for frame in 1..<count {
            png += frameControl(2 * frame - 1)
            png += ChunkSurgery.pngChunk("fdAT", ChunkSurgery.bigEndian(2 * frame) + data)
        }
        return png + ChunkSurgery.pngChunk("IEND", [])
    }

    @Test("Surplus data of all frames of an APNG together may be as long as that of one image")
    func surplus() {
        let data = CodecBombTests.zeros(40_000_000)
        #expect(data.count > 30_000 && data.count < 60_000)
        let two = run(IMAGE_CODEC_CHECK, IMAGE_CODEC_PNG, Self.animation(2, data))
        #expect(two.status == IMAGE_CODEC_WHOLE.rawValue, "\(two)")
        let many = run(IMAGE_CODEC_CHECK, IMAGE_CODEC_PNG, Self.animation(100, data))
        #expect(many.status == IMAGE_CODEC_OVER_DECODING.rawValue && many.message.contains("behind the last row"))
        #expect(many.seconds < 3 * two.seconds + Self.slack, "\(many) \(two)")
    }

    @Test("A frame of an APNG costs its own chunks, not those before the image again")
    func frames() {
        let chunks = Self.repeated(ChunkSurgery.pngChunk("teXt", []), 300_000)
        // Data with a byte behind its end, on which libpng decides.
        let file = Self.animation(1_000, CodecBombTests.zeros(4) + [0], behind: chunks)
        let cost = run(IMAGE_CODEC_CHECK, IMAGE_CODEC_PNG, file)
        #expect(cost.status == IMAGE_CODEC_WHOLE.rawValue && cost.seconds < 1, "\(cost)")
        let cut = run(IMAGE_CODEC_CHECK, IMAGE_CODEC_PNG, file, budget: 0.001)
        #expect(cut.status == IMAGE_CODEC_OVER_DECODING.rawValue && cut.seconds < Self.slack, "\(cut)")
    }

    @Test("The codes of a GIF are read within its time, also those that give no pixel")
    func codes() {
        let head = Array("GIF89a".utf8) + [1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255]
        // Clear codes of three bits, then a pixel and the end.
        let clears = Self.repeated([252] + Self.repeated([0x24, 0x49, 0x92], 84), 40_000)
        let file = head + [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2] + clears + [2, 0x44, 0x01, 0, 0x3B]
        let whole = run(IMAGE_CODEC_CHECK, IMAGE_CODEC_GIF, file)
        #expect(whole.status == IMAGE_CODEC_WHOLE.rawValue && whole.seconds < 2, "\(whole)")
        let cut = run(IMAGE_CODEC_CHECK, IMAGE_CODEC_GIF, file, budget: 0.005)
        #expect(cut.status == IMAGE_CODEC_OVER_DECODING.rawValue && cut.seconds < 0.005 + Self.slack, "\(cut)")
    }

    // MARK: WebP

    /// The start of a lossless image of so many pixels a side: transforms and the image of its groups, of codes that take no bit.
    private static func lossless(_ side: Int) -> [UInt8] {
        var (value, count, bytes) = (0, 0, [UInt8]())
        func put(_ bits: Int, _ width: Int) {
            value |= bits << count
            count += width
            while count >= 8 {
                bytes.append(UInt8(truncatingIfNeeded: value))
                (value, count) = (value >> 8, count - 8)
            }
        }
        func image() {
            put(0, 1)
            for _ in 0..<5 { put(1, 4) }
        }
        put(0x2F, 8)
        put(side - 1, 14)
        put(side - 1, 14)
        put(0, 4)
        for kind in 0..<2 {
            put(1 | kind << 1, 3)
            put(0, 3)
            image()
        }
        put(0, 1)
        put(0, 1)
        put(1, 1)
        put(0, 3)
        image()
        for _ in 0..<5 { put(1, 4) }
        put(0, 16)
        return bytes
    }

    @Test("Codes of one symbol, of which millions of pixels take no byte, take no step a pixel")
    func tables() {
        let data = Self.lossless(16_384)
        var steps: UInt64 = 0
        let memory = data[5...].withUnsafeBytes {
            ImageCodec.tableMemory(lossless: $0, PixelSize(width: 16_384, height: 16_384), steps: &steps)
        }
        #expect(memory > 0 && memory < 100_000 && steps < 100_000, "\(memory) \(steps)")
    }

    @Test("The chunks of a WebP are counted, and so are the steps for the prefix codes of all of them")
    func chunks() throws {
        let (side, canvas) = (9_999, [UInt8(15), 0x27, 0, 15, 0x27, 0])
        let head = WebPSamples.chunk("VP8X", [0x10, 0, 0, 0] + canvas)
        let image = WebPSamples.chunk("VP8L", Self.lossless(side + 1) + [UInt8](repeating: 0, count: 64))
        let alpha = WebPSamples.chunk("ALPH", [1] + Self.lossless(side + 1)[5...])
        let info = ImageInfo(format: .webp, width: side + 1, height: side + 1, level: .structure)
        let structure = WebPStructure(limits: ImageCoder.Limits())
        func memory(_ count: Int) throws(ImageFault) -> Int {
            let file = WebPSamples.riff(head + Self.repeated(alpha, count) + image)
            return try file.span.withUnsafeBytes { bytes throws(ImageFault) in try structure.memory(bytes, info).check }
        }
        #expect(try memory(1) > 0)
        let error = #expect(throws: ImageFault.self) { _ = try memory(200_000) }
        #expect(
            error?.kind == .overLimit(.decodeTime) && error?.error.code == .tooLarge, "\(String(describing: error))")
        let many = WebPSamples.riff(head + Self.repeated(WebPSamples.chunk("abcd", []), 1_100_000) + image)
        let refusal = #expect(throws: WebImageError.self) {
            try many.span.withUnsafeBytes { bytes throws(WebImageError) in
                try ImageCoder(sandbox: nil).verify(bytes, level: .structure)
            }
        }
        #expect(refusal?.code == .tooLarge && refusal?.message.contains("1000000 chunks") == true)
    }
}

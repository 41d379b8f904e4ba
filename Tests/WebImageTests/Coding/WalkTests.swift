import CImageCodec
import CReferenceCodec
import Foundation
import TestSupport
import Testing

@testable import Origin
@testable import WebImage

/// Images that encoders write, and thousands of damaged ones: what is proved to be whole without the library of its format, the library decodes without a
/// word, and of what is whole nothing is left to it.
///
/// `TEST_WALK_SEED` gives other numbers, `TEST_WALK_MUTANTS` more of each image; `TEST_WALK_FILES` is a folder of JPEG and WebP to damage
/// besides, such as those of other encoders.
@Suite("Proofs against the libraries", .timeLimit(.minutes(10)))
struct WalkTests {
    private static let seed = number("TEST_WALK_SEED") ?? 20_261_130
    private static let images = isThorough ? 120 : 20
    private static let mutants = number("TEST_WALK_MUTANTS") ?? (isThorough ? 100 : 25)

    private static func number(_ name: String) -> Int? { ProcessInfo.processInfo.environment[name].flatMap(Int.init) }

    // MARK: Verdicts

    private func status(_ bytes: [UInt8], _ format: ImageFormat) -> UInt32 {
        bytes.withUnsafeBufferPointer { bytes in
            var request = image_codec_request()
            (request.format, request.task) = (ImageCodec.code(format) ?? 0, Int32(IMAGE_CODEC_PROVE.rawValue))
            (request.bytes, request.count, request.frames) = (bytes.baseAddress, bytes.count, 1)
            var limits = ImageCoder.Limits()
            limits.maxPixels = 1 << 22
            limits.cpuNanoseconds = 1 << 60
            request.limits = ImageCodec(limits: limits).bounds
            var result = image_codec_result()
            image_codec_run(&request, &result)
            defer { image_codec_release_result(&result) }
            return UInt32(bitPattern: result.status)
        }
    }

    /// Whether the library decodes it with nothing to say.
    private func isTaken(_ bytes: [UInt8], _ format: ImageFormat) -> Bool {
        bytes.withUnsafeBufferPointer { bytes in
            format == .jpeg
                ? reference_jpeg_warnings(bytes.baseAddress, bytes.count) == 0
                : reference_webp_is_whole(bytes.baseAddress, bytes.count)
        }
    }

    private struct Count: CustomStringConvertible {
        var (images, both, neither, doubts) = (0, 0, 0, 0)

        var description: String {
            "\(images) images, \(both + neither + doubts) mutants: \(both) proved, \(doubts) left to the library, which takes them, \(neither) refused"
        }
    }

    private func compare(_ bytes: [UInt8], _ name: String, _ random: inout Numbers, _ count: inout Count) {
        let sniffed = bytes.withUnsafeBytes { ImageFormat(sniffing: $0) }
        guard let format = sniffed, isTaken(bytes, format) else { return }
        count.images += 1
        #expect(status(bytes, format) == IMAGE_CODEC_WHOLE.rawValue, "\(name) is whole, and not proved")
        for number in 0..<Self.mutants {
            let mutant = Self.damaged(bytes, format, &random)
            let said = status(mutant, format)
            // Larger than the limit is no proof.
            if said != IMAGE_CODEC_WHOLE.rawValue, said != IMAGE_CODEC_UNDECIDED.rawValue { continue }
            let (isProved, isImage) = (said == IMAGE_CODEC_WHOLE.rawValue, isTaken(mutant, format))
            #expect(!isProved || isImage, "\(name), seed \(Self.seed), mutant \(number) is proved, and no image")
            switch (isProved, isImage) {
            case (true, _): count.both += 1
            case (false, true): count.doubts += 1
            case (false, false): count.neither += 1
            }
        }
    }

    // MARK: Images

    private static func sides(_ random: inout Numbers) -> (Int, Int) {
        [(8, 8), (17, 9), (33, 47), (64, 48), (97, 61), (160, 120)][random.below(6)]
    }

    private static func jpeg(_ random: inout Numbers) -> [UInt8] {
        let ((width, height), components) = (sides(&random), [1, 3, 3, 3, 4][random.below(5)])
        let photograph = PhotoLikePixels(seed: UInt64(random.below(1 << 30)), width: width, height: height)
        let pixels = photograph.samples(channels: components)
        var options = reference_jpeg_options(
            components: Int32(components), quality: Int32([5, 30, 50, 75, 85, 95, 100][random.below(7)]),
            script: UInt32(random.below(6)), sampling: UInt32(random.below(5)),
            restart_interval: UInt32([0, 0, 0, 1, 3, 20][random.below(6)]))
        // CMYK has its own four scans in libjpeg's progression.
        if components == 4 { options.script = 0 }
        return [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
            count = reference_encode_jpeg(
                pixels, UInt32(width), UInt32(height), &options, buffer.baseAddress, buffer.count)
        }
    }

    private static func webp(_ random: inout Numbers) -> [UInt8] {
        let (width, height) = sides(&random)
        let photograph = PhotoLikePixels(seed: UInt64(random.below(1 << 30)), width: width, height: height)
        let pixels = photograph.samples(channels: 3)
        var options = reference_webp_options(
            quality: Int32([0, 5, 20, 50, 75, 90, 100][random.below(7)]), method: Int32(random.below(7)),
            segments: Int32(1 + random.below(4)), partitions: Int32(random.below(4)),
            noise_shaping: Int32([0, 50, 100][random.below(3)]), filter: Int32([0, 20, 60, 100][random.below(4)]),
            sharpness: Int32(random.below(8)), has_simple_filter: random.below(2) == 0)
        let simple = [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
            count = reference_encode_webp(
                pixels, UInt32(width), UInt32(height), &options, buffer.baseAddress, buffer.count)
        }
        return random.below(3) > 0 ? simple : extended(Array(simple[20...]), width, height)
    }

    /// A frame behind VP8X and a chunk of metadata.
    private static func extended(_ frame: [UInt8], _ width: Int, _ height: Int) -> [UInt8] {
        let sides = [width - 1, height - 1].flatMap { side in (0..<3).map { UInt8(side >> (8 * $0) & 0xFF) } }
        let head = WebPSamples.chunk("VP8X", [0x20, 0, 0, 0] + sides) + WebPSamples.chunk("ICCP", [1, 2, 3])
        return WebPSamples.riff(head + WebPSamples.chunk("VP8 ", frame))
    }

    @Test("JPEG of one scan and of several, progressive and not, in all samplings")
    func jpeg() {
        var (random, count) = (Numbers(Self.seed), Count())
        for number in 0..<Self.images {
            let bytes = Self.jpeg(&random)
            #expect(!bytes.isEmpty)
            compare(bytes, "JPEG \(number)", &random, &count)
        }
        print("WalkTests JPEG, seed \(Self.seed): \(count)")
        #expect(count.images == Self.images && count.both > 0 && count.neither > count.doubts)
    }

    @Test("WebP with loss, of all methods, segments, partitions and filters", .enabled(if: ImageCoder.canDecode(.webp)))
    func webp() {
        var (random, count) = (Numbers(Self.seed), Count())
        for number in 0..<Self.images {
            let bytes = Self.webp(&random)
            #expect(!bytes.isEmpty)
            compare(bytes, "WebP \(number)", &random, &count)
        }
        print("WalkTests WebP, seed \(Self.seed): \(count)")
        #expect(count.images == Self.images && count.both > 0 && count.neither > count.doubts)
    }

    private static let folder = ProcessInfo.processInfo.environment["TEST_WALK_FILES"]

    @Test("Files of other encoders", .enabled(if: folder != nil, "TEST_WALK_FILES names none"))
    func files() throws {
        let folder = try #require(Self.folder)
        var (random, count) = (Numbers(Self.seed), Count())
        for name in try FileManager.default.contentsOfDirectory(atPath: folder).sorted() {
            guard let data = FileManager.default.contents(atPath: "\(folder)/\(name)") else { continue }
            compare(Array(data), name, &random, &count)
        }
        print("WalkTests \(folder), seed \(Self.seed): \(count)")
        #expect(count.images > 0)
    }

    // MARK: Single bits

    @Test("Every bit of the image data of a progressive JPEG and of a WebP with loss, one at a time")
    func bits() {
        let small = GeneratedImage.jpeg(seed: 3, width: 24, height: 17, progressive: true)
        for (bytes, format) in [(small, ImageFormat.jpeg), (Sample.lossyWebP.bytes, .webp)]
        where ImageCoder.canDecode(format) {
            for bit in 0..<(8 * bytes.count) {
                var mutant = bytes
                mutant[bit / 8] ^= 1 << UInt8(bit % 8)
                guard status(mutant, format) == IMAGE_CODEC_WHOLE.rawValue else { continue }
                #expect(isTaken(mutant, format), "\(format), bit \(bit)")
            }
        }
    }

    @Test(
        "What cameras write around the last interval is no doubt: fill bytes, a restart marker, comments",
        arguments: [Sample.baselineJPEG, .progressiveJPEG])
    func camera(_ sample: Sample) {
        let (bytes, end) = (sample.bytes, sample.bytes.count - 2)
        for inserted: [UInt8] in [
            [0xFF], [0xFF, 0xFF, 0xFF], [0xFF, 0xD0], [0xFF, 0xD3, 0xFF], [0xFF, 0xFE, 0, 3, 0x20],
        ] {
            let image = bytes[..<end] + inserted + bytes[end...]
            #expect(
                isTaken(Array(image), .jpeg) && status(Array(image), .jpeg) == IMAGE_CODEC_WHOLE.rawValue, "\(inserted)"
            )
        }
        // Data that are left over, to libjpeg the first one too.
        for inserted: [UInt8] in [[0xFF, 0xFF, 0], [0], [0xFF, 0xD0, 0x55]] {
            let image = Array(bytes[..<end] + inserted + bytes[end...])
            #expect(status(image, .jpeg) != IMAGE_CODEC_WHOLE.rawValue, "\(inserted)")
        }
    }

    @Test("No cut file is proved", arguments: [Sample.progressiveJPEG, .lossyWebP])
    func cuts(_ sample: Sample) {
        for end in 0..<sample.bytes.count {
            #expect(status(Array(sample.bytes[..<end]), sample.format) != IMAGE_CODEC_WHOLE.rawValue, "\(end)")
        }
    }

    @Test("A WebP whose container agrees with the cut is proved no further than libwebp decodes it")
    func cutData() throws {
        try #require(ImageCoder.canDecode(.webp))
        let bytes = Sample.lossyWebP.bytes
        var proved = 0
        for end in 30..<bytes.count {
            let mutant = Self.mended(Array(bytes[..<end]))
            guard status(mutant, .webp) == IMAGE_CODEC_WHOLE.rawValue else { continue }
            proved += 1
            #expect(isTaken(mutant, .webp), "\(end)")
        }
        // Encoders write a few bytes that no symbol needs.
        #expect(proved < 4)
    }

    @Test("Containers without their last byte of padding")
    func padding() throws {
        try #require(ImageCoder.canDecode(.webp))
        // One byte more than the symbols need.
        let odd = Array(Sample.lossyWebP.bytes[20...]) + (Sample.lossyWebP.bytes.count % 2 == 0 ? [0] : [])
        let extended = Self.extended(odd, Sample.width, Sample.height)
        for bytes in [WebPSamples.riff(WebPSamples.chunk("VP8 ", odd)), extended] {
            let unpadded = Self.mended(Array(bytes.dropLast()))
            #expect(status(bytes, .webp) == IMAGE_CODEC_WHOLE.rawValue && isTaken(bytes, .webp))
            #expect((status(unpadded, .webp) == IMAGE_CODEC_WHOLE.rawValue) == isTaken(unpadded, .webp))
        }
    }

    // MARK: Damage

    /// A bit or a byte changed, cut, a run swapped with another, doubled, removed or zeroed, scans left out or repeated.
    private static func damaged(_ bytes: [UInt8], _ format: ImageFormat, _ random: inout Numbers) -> [UInt8] {
        var mutant = bytes
        let start = random.below(8) == 0 ? 4 : min(bytes.count - 1, format == .jpeg ? firstScan(bytes) : 30)
        let place = start + random.below(bytes.count - start)
        let run = place..<min(bytes.count, place + 1 + random.below(random.below(2) == 0 ? 16 : bytes.count / 4))
        switch random.below(10) {
        case 0, 1: mutant[place] ^= 1 << UInt8(random.below(8))
        case 2: mutant[place] = UInt8(random.below(256))
        case 3:
            for _ in 0..<3 { mutant[start + random.below(bytes.count - start)] ^= 1 << UInt8(random.below(8)) }
        case 4:
            mutant.removeSubrange(place...)
            if format == .jpeg, random.below(2) == 0 { mutant += [0xFF, 0xD9] }
        case 5:
            let other = start + random.below(bytes.count - start)
            for index in run where other + index - place < bytes.count {
                mutant.swapAt(index, other + index - place)
            }
        case 6: mutant.insert(contentsOf: Array(bytes[run]), at: place)
        case 7: mutant.removeSubrange(run)
        case 8: mutant.replaceSubrange(run, with: repeatElement(0, count: run.count))
        default:
            let parts = format == .jpeg ? scans(bytes) : []
            guard parts.count > 1 else {
                mutant[place] ^= 0xFF
                break
            }
            let (one, other) = (parts[random.below(parts.count)], parts[random.below(parts.count)])
            if random.below(2) == 0 {
                mutant.removeSubrange(one)
            } else {
                mutant.insert(contentsOf: Array(bytes[other]), at: one.lowerBound)
            }
        }
        return format == .webp && random.below(2) == 0 ? mended(mutant) : mutant
    }

    private static func firstScan(_ bytes: [UInt8]) -> Int { scans(bytes).first?.lowerBound ?? 2 }

    /// Tables and scans, each with the data behind it.
    private static func scans(_ bytes: [UInt8]) -> [Range<Int>] {
        let starts = (2..<(bytes.count - 1)).filter { bytes[$0] == 0xFF && [0xC4, 0xDA, 0xD9].contains(bytes[$0 + 1]) }
        return zip(starts, starts.dropFirst()).map { $0..<$1 }
    }

    /// The same bytes in a container of their length.
    private static func mended(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.count > 20 else { return bytes }
        var mutant = bytes
        let isSimple = bytes[12..<16].elementsEqual("VP8 ".utf8)
        for (place, length) in [(4, bytes.count - 8)] + (isSimple ? [(16, bytes.count - 20)] : []) {
            for index in 0..<4 { mutant[place + index] = UInt8(length >> (8 * index) & 0xFF) }
        }
        return mutant
    }

    private struct Numbers {
        private var state: UInt64

        init(_ seed: Int) { state = UInt64(seed) | 1 }

        /// xorshift64*.
        mutating func below(_ end: Int) -> Int {
            state ^= state >> 12
            state ^= state << 25
            state ^= state >> 27
            return Int((state &* 0x2545_F491_4F6C_DD1D) >> 8) % max(1, end)
        }
    }
}

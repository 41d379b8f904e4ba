import CImageCodec
import CReferenceCodec
import Foundation
import TestSupport
import Testing

@testable import WebImage

/// What a stricter level takes, a laxer one takes, and says the same of it; and what the library of a format takes without a word, our own walk over
/// its structure takes.
@Suite("Levels agree", .timeLimit(.minutes(2)))
struct LevelOrderTests {
    /// The same each time; another one finds other things.
    private static let seed: UInt64 = 20_261_129
    private static let damages = isThorough ? 4_000 : 120

    private let coder = ImageCoder(sandbox: nil)

    /// Nil: it is refused.
    private func info(_ bytes: [UInt8], _ level: ValidationLevel) -> ImageInfo? {
        try? coder.verify(bytes, level: level)
    }

    private func compare(_ bytes: [UInt8], _ name: @autoclosure () -> String) -> Bool {
        let (header, structure) = (info(bytes, .header), info(bytes, .structure))
        let decoded = info(bytes, .decode)
        #expect(decoded == nil || structure != nil, "\(name()) is decoded, and has no structure")
        #expect(structure == nil || header != nil, "\(name()) has a structure and no header")
        for (stricter, laxer) in [(decoded, structure), (structure, header)] {
            guard let stricter, let laxer else { continue }
            #expect(
                stricter.format == laxer.format && stricter.width == laxer.width && stricter.height == laxer.height,
                "\(name()) has two sizes")
        }
        if let decoded, let structure { #expect(decoded.frameCount == structure.frameCount, "\(name())") }
        return decoded != nil
    }

    /// Whether the format's library alone takes an image, with nothing to say of it; nil of formats that we decode ourselves.
    private func isTakenByLibrary(_ bytes: [UInt8], _ format: ImageFormat) -> Bool? {
        bytes.withUnsafeBufferPointer { bytes in
            switch format {
            case .jpeg: return reference_jpeg_is_whole(bytes.baseAddress, bytes.count)
            case .png: return reference_png_is_whole(bytes.baseAddress, bytes.count)
            case .webp:
                guard reference_webp_can_be_shown() else { return nil }
                return reference_webp_is_shown(bytes.baseAddress, bytes.count)
            case .avif:
                var request = image_codec_request()
                (request.format, request.task) = (ImageCodec.code(format) ?? 0, Int32(IMAGE_CODEC_CHECK.rawValue))
                (request.bytes, request.count, request.frames) = (bytes.baseAddress, bytes.count, 1)
                request.limits = ImageCodec(limits: ImageCoder.Limits()).bounds
                var result = image_codec_result()
                image_codec_run(&request, &result)
                defer { image_codec_release_result(&result) }
                return result.status == IMAGE_CODEC_WHOLE.rawValue && result.warnings_seen == 0
            default: return nil
            }
        }
    }

    @Test(
        "Each kind of image, damaged in five ways, its checksums and sizes mended in half of the cases",
        arguments: Sample.allCases)
    func damaged(_ sample: Sample) {
        var random = SeededNumbers(Self.seed ^ UInt64(sample.bytes.count))
        var (taken, refused) = (0, 0)
        for number in 0..<Self.damages {
            var bytes = sample.bytes
            // Some are whole: of formats with checksums few others are taken.
            if number % 20 > 0 { Self.damage(&bytes, kind: number % 5, &random) }
            if number % 2 == 0 {
                if sample.format == .png { bytes = ChunkSurgery.repaired(bytes) }
                if sample.format == .webp { Self.mendContainer(&bytes) }
            }
            let name = "\(sample), seed \(Self.seed), number \(number)"
            if compare(bytes, name) { taken += 1 } else { refused += 1 }
            guard isTakenByLibrary(bytes, sample.format) == true else { continue }
            let error = coder.failure(bytes, level: .structure)
            if let error, Self.isStricter(error, sample.format) { continue }
            #expect(error == nil, "\(name): \(error?.message ?? ""), which the library takes")
        }
        print("LevelOrderTests \(sample), seed \(Self.seed): \(taken) taken, \(refused) refused")
        #expect(taken > 0 && refused > 0)
    }

    /// What is refused although a library shows it: what is over our limits, what libpng does not know of animations, and boxes that are cut or whose
    /// sizes contradict each other; libavif passes over those that it does not need.
    private static func isStricter(_ error: WebImageError, _ format: ImageFormat) -> Bool {
        switch format {
        case .avif: ["AVIF with a damaged box", "AVIF ends inside the image"].contains(error.message)
        case .png:
            error.code == .tooLarge || error.message.starts(with: "PNG with a frame")
                || error.message == "PNG with frames out of order"
        default: error.code == .tooLarge
        }
    }

    @Test("Inputs of the fuzz targets", arguments: ["jpeg", "png", "gif", "avif"])
    func corpus(_ target: String) throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Fuzz/corpus/\(target).txt").standardized
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
            let parts = line.split(separator: " ", omittingEmptySubsequences: false)
            let bytes = Array(try #require(Data(base64Encoded: String(parts[1]))))
            _ = compare(bytes, "\(target)/\(parts[0])")
            guard let format = ImageFormat(rawValue: target), isTakenByLibrary(bytes, format) == true,
                let error = coder.failure(bytes, level: .structure), !Self.isStricter(error, format)
            else { continue }
            Issue.record("\(target)/\(parts[0]): \(error.message), which the library takes")
        }
    }

    /// A byte changed, a run zeroed, removed or doubled, two bytes swapped.
    private static func damage(_ bytes: inout [UInt8], kind: Int, _ random: inout SeededNumbers) {
        // Behind the signature, without which it is no image for anybody.
        let place = 12 + random.below(bytes.count - 12)
        let run = place..<min(bytes.count, place + 1 + random.below(24))
        switch kind {
        case 0: bytes[place] ^= UInt8(1 + random.below(255))
        case 1: bytes.replaceSubrange(run, with: repeatElement(0, count: run.count))
        case 2: bytes.removeSubrange(run)
        case 3: bytes.insert(contentsOf: Array(bytes[run]), at: place)
        default: bytes.swapAt(place, 12 + random.below(bytes.count - 12))
        }
    }

    /// The size of a RIFF container.
    private static func mendContainer(_ bytes: inout [UInt8]) {
        for index in 0..<4 { bytes[4 + index] = UInt8(truncatingIfNeeded: (bytes.count - 8) >> (8 * index)) }
    }
}

/// xorshift64*.
private struct SeededNumbers {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed | 1 }

    mutating func below(_ end: Int) -> Int {
        state ^= state >> 12
        state ^= state << 25
        state ^= state >> 27
        return Int((state &* 0x2545_F491_4F6C_DD1D) >> 8) % end
    }
}

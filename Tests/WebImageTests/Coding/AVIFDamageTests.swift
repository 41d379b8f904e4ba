import CReferenceCodec
import Testing
import WebImage

/// Damage that libavif itself skips over.
@Suite(.timeLimit(.minutes(5)))
struct AVIFDamageTests {
    private let coder = ImageCoder()

    /// The place behind a box's name, the last one of that name if `isLast`.
    private static func inside(_ name: String, _ bytes: [UInt8], isLast: Bool = false) -> Int {
        let pattern = Array(name.utf8)
        return 4
            + (isLast ? ChunkSurgery.lastOffset(of: pattern, in: bytes) : ChunkSurgery.offset(of: pattern, in: bytes))
    }

    /// A number put at a place behind a box's name.
    struct Damage: Sendable, CustomTestStringConvertible {
        var box: String
        var offset: Int
        var bytes: [UInt8]
        var isLast = false
        var testDescription: String { "\(box) + \(offset)" }
    }

    @Test(arguments: [
        // The size of a box in a box: 0, beyond the box around it, less than a header; an item with one byte less.
        Damage(box: "edts", offset: -8, bytes: [0, 0, 0, 0]), Damage(box: "pixi", offset: -8, bytes: [0, 0, 1, 0]),
        Damage(box: "tkhd", offset: -5, bytes: [7]), Damage(box: "infe", offset: -5, bytes: [0x19]),
        // Boxes that have to be there under another name.
        Damage(box: "mdhd", offset: -4, bytes: [0x6E]), Damage(box: "elst", offset: -4, bytes: [0x66]),
        Damage(box: "tkhd", offset: -4, bytes: [0x75]),
        // More edits than there are, a repetition of nothing, no time scale, another handler.
        Damage(box: "elst", offset: 5, bytes: [1]), Damage(box: "mdhd", offset: 20, bytes: [0, 0, 0, 0]),
        Damage(box: "tkhd", offset: 24, bytes: [UInt8](repeating: 0, count: 8)),
        Damage(box: "elst", offset: 8, bytes: [UInt8](repeating: 0, count: 8)),
        Damage(box: "hdlr", offset: 0, bytes: [1]), Damage(box: "hdlr", offset: 5, bytes: [1], isLast: true),
        // A name without an end, references to no item, a property twice and one without a number.
        Damage(box: "infe", offset: 17, bytes: [1]), Damage(box: "auxl", offset: 0, bytes: [0, 0]),
        Damage(box: "auxl", offset: 2, bytes: [0, 2]), Damage(box: "auxl", offset: 4, bytes: [0, 0]),
        Damage(box: "ipma", offset: 11, bytes: [2, 2]), Damage(box: "ipma", offset: 11, bytes: [0x80]),
        // Locations of 2 bytes, of a version to come, and outside of the file.
        Damage(box: "iloc", offset: 5, bytes: [0x20]), Damage(box: "iloc", offset: 0, bytes: [3]),
        // No channels, channels of several depths, a type of color and flags that do not exist.
        Damage(box: "pixi", offset: 4, bytes: [0]), Damage(box: "pixi", offset: 6, bytes: [9]),
        Damage(box: "colr", offset: 0, bytes: [0x6D]), Damage(box: "colr", offset: 10, bytes: [0x81]),
    ])
    func `a damaged box is refused where the picture is still whole`(damage: Damage) {
        var bytes = HexSamples.animatedAVIF
        let place = Self.inside(damage.box, bytes, isLast: damage.isLast) + damage.offset
        #expect(Array(bytes[place..<place + damage.bytes.count]) != damage.bytes)
        bytes.replaceSubrange(place..<place + damage.bytes.count, with: damage.bytes)
        for level in [ValidationLevel.structure, .decode] {
            #expect(coder.failure(bytes, level: level)?.code == .badImageData)
        }
    }

    @Test
    func `the header of an image that is still arriving is known before its data`() throws {
        // The item is longer than all that has arrived, which libavif takes for damage.
        var bytes = HexSamples.avif
        let data = ChunkSurgery.offset(of: Array("mdat".utf8), in: bytes)
        let length = Self.inside("iloc", bytes) + 18
        bytes.replaceSubrange(length..<length + 4, with: [0, 1, 0, 0])
        let header = try bytes[..<(data + 4)].withUnsafeBytes { bytes throws(WebImageError) in
            try coder.inspectHeader(bytes)
        }
        #expect(header.map { [$0.width, $0.height] } == [Sample.width, Sample.height])
        let error = try #require(coder.failure(bytes, level: .structure))
        #expect(error.code == .badImageData && error.isIncompleteImage)
    }

    @Test
    func `an item that reaches beyond the file is one that ends early`() {
        var bytes = HexSamples.animatedAVIF
        // The first item: behind version, widths, count, its number and data reference, and the number of its extents.
        let length = Self.inside("iloc", bytes) + 18
        bytes[length] = 1
        let error = coder.failure(bytes, level: .structure)
        #expect(error?.isIncompleteImage == true, "\(error?.message ?? "accepted")")
    }

    @Test(arguments: [Sample.avif, .animatedAVIF])
    func `one damaged bit of AV1 data is nearly always seen`(sample: Sample) {
        let start = Self.inside("mdat", sample.bytes)
        var accepted = 0
        for place in start..<sample.bytes.count {
            var bytes = sample.bytes
            bytes[place] ^= UInt8(1 << (place % 8))
            if coder.failure(bytes, level: .decode) == nil { accepted += 1 }
        }
        #expect(accepted * 5 < sample.bytes.count - start, "\(accepted) of \(sample.bytes.count - start)")
    }

    @Test
    func `a color that has no formula, and a pixel format other than announced, are refused`() {
        var color = HexSamples.avif
        // Matrix coefficients: 3 is reserved.
        color[Self.inside("colr", color) + 9] = 3
        #expect(coder.failure(color, level: .structure) == nil)
        #expect(coder.failure(color, level: .decode)?.code == .badImageData)
        var format = HexSamples.avif
        // 4:2:0 becomes 4:4:4.
        format[Self.inside("av1C", format) + 2] &= 0xF3
        #expect(coder.failure(format, level: .decode)?.code == .badImageData)
    }

    @Test(.enabled(if: allocations_can_be_counted(), "a sanitizer has its own malloc"))
    func `a frame larger than the boxes say is refused before it is allocated`() {
        var bytes = HexSamples.largeAVIF
        #expect(coder.failure(bytes, level: .decode) == nil)
        bytes.replaceSubrange(
            Self.inside("ispe", bytes) + 4..<Self.inside("ispe", bytes) + 12, with: [0, 0, 0, 16, 0, 0, 0, 16])
        allocations_start()
        let error = ImageCoder(sandbox: nil).failure(bytes, level: .decode)
        let allocated = allocations_stop()
        #expect(error?.code == .badImageData)
        #expect(allocated.peak < 1024 * 768, "\(allocated)")
    }
}

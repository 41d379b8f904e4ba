import CReferenceCodec
import Testing
import WebImage

@Suite(.timeLimit(.minutes(1)))
struct CodecVerdictTests {
    private static let damages = 10_000
    private let coder = ImageCoder()

    private static func isWhole(_ bytes: [UInt8], _ format: ImageFormat) -> Bool {
        bytes.withUnsafeBufferPointer { bytes in
            format == .jpeg
                ? reference_jpeg_is_whole(bytes.baseAddress, bytes.count)
                : reference_png_is_whole(bytes.baseAddress, bytes.count)
        }
    }

    /// The cheap decode looks at everything the full one looks at: 10,000 bytes damaged, one at a time, over all kinds.
    @Test(arguments: Sample.decoded)
    func `one damaged byte gets the verdict of the library's full decode`(sample: Sample) {
        let seed = UInt64.random(in: 0 ... .max)
        print("CodecVerdictTests \(sample) seed \(seed)")
        var random = Random(seed)
        var rejected = 0
        let count = Self.damages / Sample.decoded.count + 1
        for _ in 0..<count {
            var bytes = sample.bytes
            // The third byte of a JPEG is part of the signature, without which nobody asks the library.
            let place = 3 + Int(random.next() % UInt64(bytes.count - 3))
            let flip = UInt8(1 + random.next() % 255)
            bytes[place] ^= flip
            let expected = Self.isWhole(bytes, sample.format)
            let error = coder.failure(bytes, level: .decode)
            if error != nil { rejected += 1 }
            // The coder also refuses sizes over its limits, which the library alone would decode.
            if error?.message.contains("the limit is") == true { continue }
            #expect(
                (error == nil) == expected,
                "\(sample) seed \(seed) byte \(place) ^ \(flip): \(error?.message ?? "accepted"), full decode \(expected)"
            )
        }
        #expect(rejected > 0)
    }

    private struct Random {
        private var state: UInt64

        init(_ seed: UInt64) { state = seed | 1 }

        /// xorshift64*.
        mutating func next() -> UInt64 {
            state ^= state >> 12
            state ^= state << 25
            state ^= state >> 27
            return (state &* 0x2545_F491_4F6C_DD1D) >> 8
        }
    }
}

import CReferenceCodec
import Testing
import WebImage

@Suite(.timeLimit(.minutes(5)))
struct CodecVerdictTests {
    private static let damages = 10_000
    private static let repaired = 2_000
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

    /// The CRCs hide damage from nobody here: libdeflate's proof, and libpng where it has none, against libpng alone.
    @Test(arguments: Sample.decoded.filter { $0.format == .png })
    func `a damaged PNG with right CRCs gets the verdict of libpng's full decode`(sample: Sample) {
        let seed = UInt64.random(in: 0 ... .max)
        print("CodecVerdictTests \(sample) repaired, seed \(seed)")
        var random = Random(seed)
        var (accepted, rejected) = (0, 0)
        for number in 0..<Self.repaired {
            var bytes = sample.bytes
            // One of a hundred is whole: of 16 bits a pixel some seeds damage each of the others.
            if number % 100 > 0 { Self.damage(&bytes, kind: number % 5, &random) }
            bytes = ChunkSurgery.repaired(bytes)
            let expected = Self.isWhole(bytes, .png)
            let error = coder.failure(bytes, level: .decode)
            if error?.message.contains("the limit is") == true { continue }
            if error == nil { accepted += 1 } else { rejected += 1 }
            #expect(
                (error == nil) == expected,
                "\(sample) seed \(seed) number \(number): \(error?.message ?? "accepted"), full decode \(expected)")
        }
        #expect(rejected > Self.repaired / 4 && accepted > 0)
    }

    /// What no checksum tells: filters that do not exist, indices beyond the palette, too few or too many rows.
    @Test
    func `image data of any bytes gets the verdict of libpng's full decode`() {
        let seed = UInt64.random(in: 0 ... .max)
        print("CodecVerdictTests rows, seed \(seed)")
        var random = Random(seed)
        var (accepted, rejected) = (0, 0)
        for number in 0..<Self.repaired {
            let bytes = Self.rows(&random)
            let expected = Self.isWhole(bytes, .png)
            let error = coder.failure(bytes, level: .decode)
            if error == nil { accepted += 1 } else { rejected += 1 }
            #expect(
                (error == nil) == expected,
                "seed \(seed) number \(number): \(error?.message ?? "accepted"), full decode \(expected)")
        }
        #expect(rejected > Self.repaired / 4 && accepted > Self.repaired / 4)
    }

    /// A PNG whose rows were never encoded.
    private static func rows(_ random: inout Random) -> [UInt8] {
        func below(_ end: Int) -> Int { Int(random.next() % UInt64(end)) }
        let (color, depth, samples) = [(0, 1, 1), (0, 8, 1), (2, 8, 3), (3, 2, 1), (3, 8, 1), (6, 16, 4)][below(6)]
        let (width, height, entries) = (1 + below(40), 1 + below(12), 1 + below(1 << depth & 0xFF | 3))
        // One row of twenty has a filter of any number.
        var raw: [UInt8] = []
        for _ in 0..<height {
            raw.append(UInt8(below(20) == 0 ? below(256) : below(5)))
            let limit = color == 3 && depth == 8 && below(4) > 0 ? entries : 256
            for _ in 0..<(width * depth * samples + 7) / 8 { raw.append(UInt8(below(limit))) }
        }
        switch below(8) {
        case 0: raw.removeLast(min(raw.count, 1 + below(8)))
        case 1: raw += [UInt8](repeating: 1, count: 1 + below(8))
        default: break
        }
        let data = [UInt8](unsafeUninitializedCapacity: raw.count + 1_000) { buffer, count in
            count = reference_compress(raw, raw.count, buffer.baseAddress, buffer.count)
        }
        var header = ChunkSurgery.bigEndian(width)
        header += ChunkSurgery.bigEndian(height)
        header += [UInt8(depth), UInt8(color), 0, 0, 0]
        var bytes = Array(Sample.png.bytes[..<8])
        bytes += ChunkSurgery.pngChunk("IHDR", header)
        let palette = [UInt8](repeating: 9, count: 3 * min(entries, 1 << depth))
        if color == 3 { bytes += ChunkSurgery.pngChunk("PLTE", palette) }
        bytes += ChunkSurgery.pngChunk("IDAT", data)
        bytes += ChunkSurgery.pngChunk("IEND", [])
        return bytes
    }

    /// Behind the signature: a byte changed, a run zeroed, removed or doubled, two bytes swapped.
    private static func damage(_ bytes: inout [UInt8], kind: Int, _ random: inout Random) {
        let place = 8 + Int(random.next() % UInt64(bytes.count - 8))
        let run = place..<min(bytes.count, place + 1 + Int(random.next() % 64))
        switch kind {
        case 0: bytes[place] ^= UInt8(1 + random.next() % 255)
        case 1: bytes.replaceSubrange(run, with: repeatElement(0, count: run.count))
        case 2: bytes.removeSubrange(run)
        case 3: bytes.insert(contentsOf: Array(bytes[run]), at: place)
        default: bytes.swapAt(place, 8 + Int(random.next() % UInt64(bytes.count - 8)))
        }
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

/// A gzip stream of zeros, at 13 bits per 258 bytes (RFC 1951, fixed Huffman codes).
enum GzipBomb {
    static func bytes(_ count: Int) -> [UInt8] {
        var bits = BitWriter()
        bits.bytes = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]
        // One final block with fixed codes: BFINAL 1, BTYPE 01, lowest bit first.
        bits.append(0b011, count: 3)
        var rest = count
        if rest > 0 {
            bits.appendCode(0x30, count: 8)
            rest -= 1
        }
        while rest >= 258 {
            // Length code 285 (258 bytes), distance code 0 (one byte back).
            bits.appendCode(0xc5, count: 8)
            bits.appendCode(0, count: 5)
            rest -= 258
        }
        for _ in 0..<rest { bits.appendCode(0x30, count: 8) }
        bits.appendCode(0, count: 7)
        bits.flush()
        for word in [crcOfZeros(count), UInt32(truncatingIfNeeded: count)] {
            for shift in [0, 8, 16, 24] as [UInt32] { bits.bytes.append(UInt8(truncatingIfNeeded: word >> shift)) }
        }
        return bits.bytes
    }

    private static func crcOfZeros(_ count: Int) -> UInt32 {
        let table = (0..<256 as Range<UInt32>).map { value in
            (0..<8).reduce(value) { crc, _ in crc & 1 == 1 ? 0xedb8_8320 ^ (crc >> 1) : crc >> 1 }
        }
        var crc: UInt32 = 0xffff_ffff
        for _ in 0..<count { crc = table[Int(crc & 0xff)] ^ (crc >> 8) }
        return ~crc
    }

    private struct BitWriter {
        var bytes: [UInt8] = []
        private var accumulator: UInt64 = 0
        private var filled: UInt64 = 0

        mutating func append(_ value: UInt64, count: UInt64) {
            accumulator |= value << filled
            filled += count
            while filled >= 8 {
                bytes.append(UInt8(truncatingIfNeeded: accumulator))
                accumulator >>= 8
                filled -= 8
            }
        }

        /// Huffman codes start with the highest bit.
        mutating func appendCode(_ code: UInt64, count: UInt64) {
            var reversed: UInt64 = 0
            for bit in 0..<count where code >> bit & 1 == 1 { reversed |= 1 << (count - 1 - bit) }
            append(reversed, count: count)
        }

        mutating func flush() {
            if filled > 0 { append(0, count: 8 - filled) }
        }
    }
}

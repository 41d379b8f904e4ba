extension GeneratedImage {
    /// A lossless WebP without transforms, cache or back references: each of red, green and blue is a code of eight bits.
    package static func webp(seed: UInt64, width: Int, height: Int) -> [UInt8] {
        var data: [UInt8] = [0x2F]
        data += losslessImage(seed: seed, width: width, height: height)
        var file = Array("RIFF".utf8)
        let padding = data.count & 1
        file.appendLittleEndian(4 + 8 + data.count + padding, bytes: 4)
        file += "WEBPVP8L".utf8
        file.appendLittleEndian(data.count, bytes: 4)
        return file + data + [UInt8](repeating: 0, count: padding)
    }

    /// RFC 9649 section 3.4 and on: size, no alpha, version 0, no transform, no colour cache, one group of five prefix codes.
    private static func losslessImage(seed: UInt64, width: Int, height: Int) -> [UInt8] {
        var bits = BitWriter()
        bits.write(width - 1, bits: 14)
        bits.write(height - 1, bits: 14)
        bits.write(0, bits: 1 + 3 + 1 + 1 + 1)
        // Green shares its alphabet with 24 lengths of back references.
        writeByteCode(unused: 24, &bits)
        writeByteCode(unused: 0, &bits)
        writeByteCode(unused: 0, &bits)
        writeSingleSymbol(255, &bits)
        writeSingleSymbol(0, &bits)
        let pixels = PhotoLikePixels(seed: seed, width: width, height: height).samples(channels: 3)
        for pixel in stride(from: 0, to: pixels.count, by: 3) {
            for channel in [1, 0, 2] { bits.write(reversed(pixels[pixel + channel]), bits: 8) }
        }
        return bits.finished()
    }

    /// Section 3.7.2.1.2: a length for each symbol of the alphabet, 8 for the 256 bytes and 0 for the rest. The lengths are themselves
    /// written in a code, in which 0 and 8 have one bit each: 12 entries of the order 17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8.
    private static func writeByteCode(unused: Int, _ bits: inout BitWriter) {
        bits.write(0, bits: 1)
        bits.write(12 - 4, bits: 4)
        for entry in 0..<12 { bits.write(entry == 2 || entry == 11 ? 1 : 0, bits: 3) }
        // The lengths cover the whole alphabet.
        bits.write(0, bits: 1)
        for _ in 0..<256 { bits.write(1, bits: 1) }
        for _ in 0..<unused { bits.write(0, bits: 1) }
    }

    /// Section 3.7.2.1.1: a simple code of one symbol, which then takes no bits; the symbol itself in 8 bits.
    private static func writeSingleSymbol(_ symbol: Int, _ bits: inout BitWriter) {
        bits.write(1, bits: 1)
        bits.write(0, bits: 1)
        bits.write(1, bits: 1)
        bits.write(symbol, bits: 8)
    }

    /// Prefix codes are read from their highest bit.
    private static func reversed(_ byte: UInt8) -> Int {
        var byte = byte, result = 0
        for _ in 0..<8 {
            result = result << 1 | Int(byte & 1)
            byte >>= 1
        }
        return result
    }
}

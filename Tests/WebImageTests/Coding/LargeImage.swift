import CReferenceCodec

/// Images of many pixels and few bytes, made without their pixels in memory.
enum LargeImage {
    /// A baseline JPEG in grey: a block is two bits, no difference to the one before it and the end of block.
    static func jpeg(width: Int, height: Int) -> [UInt8] {
        func segment(_ marker: UInt8, _ data: [UInt8]) -> [UInt8] {
            [0xFF, marker, UInt8((data.count + 2) >> 8), UInt8((data.count + 2) & 0xFF)] + data
        }
        // One code, of one bit.
        let codes: [UInt8] = [1] + [UInt8](repeating: 0, count: 15) + [0]
        let blocks = ((width + 7) / 8) * ((height + 7) / 8)
        var data = [UInt8](repeating: 0, count: (blocks + 3) / 4)
        if blocks % 4 > 0 { data[data.count - 1] = 0xFF >> (2 * (blocks % 4)) }
        return [0xFF, 0xD8] + segment(0xDB, [0] + [UInt8](repeating: 1, count: 64))
            + segment(0xC0, [8] + bigEndian16(height) + bigEndian16(width) + [1, 1, 0x11, 0])
            + segment(0xC4, [0x00] + codes) + segment(0xC4, [0x10] + codes)
            + segment(0xDA, [1, 1, 0, 0, 63, 0]) + data + [0xFF, 0xD9]
    }

    /// A black PNG of one bit a pixel.
    static func png(width: Int, height: Int) -> [UInt8] {
        let raw = [UInt8](repeating: 0, count: (1 + (width + 7) / 8) * height)
        let data = [UInt8](unsafeUninitializedCapacity: raw.count / 500 + 1_000) { buffer, length in
            length = reference_compress(raw, raw.count, buffer.baseAddress, buffer.count)
        }
        let header = ChunkSurgery.bigEndian(width) + ChunkSurgery.bigEndian(height) + [1, 0, 0, 0, 0]
        return Array(ChunkSurgery.pngHeader(width: 1, height: 1).prefix(8)) + ChunkSurgery.pngChunk("IHDR", header)
            + ChunkSurgery.pngChunk("IDAT", data) + ChunkSurgery.pngChunk("IEND", [])
    }

    /// A GIF of one colour that fills its screen.
    static func gif(width: Int, height: Int) -> [UInt8] {
        gif(width: width, height: height, frames: [frame(0, 0, width, height)])
    }

    /// A GIF of frames of a pixel each on a screen.
    static func animation(frames: Int, width: Int, height: Int) -> [UInt8] {
        gif(width: width, height: height, frames: (0..<frames).map { frame($0 % width, 0, 1, 1) })
    }

    static func gif(width: Int, height: Int, frames: [[UInt8]]) -> [UInt8] {
        Array("GIF89a".utf8) + littleEndian16(width) + littleEndian16(height) + [0x80, 0, 0] + [0, 0, 0, 255, 255, 255]
            + frames.joined() + [0x3B]
    }

    /// An image of a GIF at a place, all of its first colour.
    static func frame(_ x: Int, _ y: Int, _ width: Int, _ height: Int) -> [UInt8] {
        let data = run(of: width * height)
        var blocks: [UInt8] = []
        for start in stride(from: 0, to: data.count, by: 255) {
            let block = data[start..<min(start + 255, data.count)]
            blocks += [UInt8(block.count)] + block
        }
        return [0x2C] + [x, y, width, height].flatMap(littleEndian16) + [0, 2] + blocks + [0]
    }

    /// The codes of so many zeros, at a code size of 2: each string is longer by one than the one before, until the table is full.
    private static func run(of count: Int) -> [UInt8] {
        var (bytes, bits, filled): ([UInt8], UInt32, UInt32) = ([], 0, 0)
        func put(_ code: Int, _ width: Int) {
            bits |= UInt32(code) << filled
            filled += UInt32(width)
            while filled >= 8 {
                bytes.append(UInt8(truncatingIfNeeded: bits))
                bits >>= 8
                filled -= 8
            }
        }
        put(4, 3)
        var (left, next, width, length, isFirst) = (count, 6, 3, 1, true)
        // The string of code `n` from 6 on is `n - 4` zeros long.
        while left > 0 {
            length = isFirst ? 1 : min(next < 4096 ? next - 4 : 4091, left)
            put(length == 1 ? 0 : length + 4, width)
            left -= length
            if !isFirst, next < 4096 {
                next += 1
                if next == 1 << width, width < 12 { width += 1 }
            }
            isFirst = false
        }
        put(5, width)
        if filled > 0 { bytes.append(UInt8(truncatingIfNeeded: bits)) }
        return bytes
    }

    private static func bigEndian16(_ value: Int) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xFF)] }
    private static func littleEndian16(_ value: Int) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8)] }
}

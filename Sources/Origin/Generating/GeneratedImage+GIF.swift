extension GeneratedImage {
    /// A GIF whose LZW data has literal codes only. With more than one frame it is an animation that loops for ever.
    package static func gif(seed: UInt64, width: Int, height: Int, frames: Int = 1) -> [UInt8] {
        var file = Array("GIF89a".utf8)
        file.appendLittleEndian(width, bytes: 2)
        file.appendLittleEndian(height, bytes: 2)
        // A global table of 256 colours, background 0, square pixels.
        file += [0xF7, 0, 0]
        file += PhotoLikePixels.palette
        if frames > 1 {
            file += [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + [3, 1, 0, 0, 0]
        }
        for frame in 0..<frames {
            // A tenth of a second.
            if frames > 1 { file += [0x21, 0xF9, 4, 0, 10, 0, 0, 0] }
            file += [0x2C, 0, 0, 0, 0]
            file.appendLittleEndian(width, bytes: 2)
            file.appendLittleEndian(height, bytes: 2)
            file += [0, 8]
            let pixels = PhotoLikePixels(seed: seed &+ UInt64(frame), width: width, height: height).samples(channels: 1)
            appendSubBlocks(literalCodes(pixels), to: &file)
        }
        return file + [0x3B]
    }

    /// A clear code after every 254 literals keeps the reader's table short of 512 entries, and so every code at 9 bits.
    private static func literalCodes(_ pixels: [UInt8]) -> [UInt8] {
        let clear = 256, end = 257
        var codes = BitWriter()
        for (index, pixel) in pixels.enumerated() {
            if index % 254 == 0 { codes.write(clear, bits: 9) }
            codes.write(Int(pixel), bits: 9)
        }
        codes.write(end, bits: 9)
        return codes.finished()
    }

    private static func appendSubBlocks(_ data: [UInt8], to file: inout [UInt8]) {
        for start in stride(from: 0, to: data.count, by: 255) {
            let block = data[start..<min(start + 255, data.count)]
            file.append(UInt8(block.count))
            file += block
        }
        file.append(0)
    }
}

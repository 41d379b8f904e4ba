internal import CImageCodec

/// Images for tests, `demo` and the benchmark: the same bytes for the same seed and library versions. The content resembles a photograph,
/// soft areas with noise, so that file sizes are realistic.
package enum GeneratedImage {
    package enum JPEGColor: Int32, Sendable, CaseIterable {
        case gray = 1
        case color = 3
        case cmyk = 4
    }

    package enum PNGColor: Int32, Sendable, CaseIterable {
        case gray = 0
        case rgb = 2
        case palette = 3
        case grayAlpha = 4
        case rgba = 6

        var channels: Int {
            switch self {
            case .gray, .palette: 1
            case .grayAlpha: 2
            case .rgb: 3
            case .rgba: 4
            }
        }
    }

    /// YCbCr 4:2:0 if in colour. `quality` is 1 to 100; `restartInterval` counts MCUs, 0 means none.
    package static func jpeg(
        seed: UInt64, width: Int, height: Int, quality: Int = 80, progressive: Bool = false, color: JPEGColor = .color,
        restartInterval: Int = 0
    ) -> [UInt8] {
        let pixels = PhotoLikePixels(seed: seed, width: width, height: height).samples(channels: Int(color.rawValue))
        var options = image_codec_jpeg_options(
            components: color.rawValue, quality: Int32(quality), progressive: progressive,
            restart_interval: UInt32(restartInterval), metadata: image_codec_metadata())
        return written { image_codec_encode_jpeg(pixels, UInt32(width), UInt32(height), &options, &$0) }
    }

    /// `depth` is the number of bits per sample, 8 or 16; a palette has 8.
    package static func png(
        seed: UInt64, width: Int, height: Int, interlaced: Bool = false, color: PNGColor = .rgb, depth: Int = 8
    ) -> [UInt8] {
        let samples = color.channels * (depth / 8)
        let pixels = PhotoLikePixels(seed: seed, width: width, height: height).samples(channels: samples)
        let palette = PhotoLikePixels.palette
        return palette.withUnsafeBufferPointer { palette in
            var options = image_codec_png_options(
                color_type: color.rawValue, bit_depth: Int32(depth), interlaced: interlaced,
                palette: palette.baseAddress,
                palette_count: 256, metadata: image_codec_metadata())
            return written { image_codec_encode_png(pixels, UInt32(width), UInt32(height), &options, &$0) }
        }
    }

    /// Empty only if the format does not allow the arguments.
    private static func written(_ encode: (inout image_codec_buffer) -> Bool) -> [UInt8] {
        var buffer = image_codec_buffer()
        defer { image_codec_release(&buffer) }
        return encode(&buffer) ? Array(UnsafeBufferPointer(start: buffer.bytes, count: buffer.count)) : []
    }
}

// MARK: - GIF

extension GeneratedImage {
    /// A GIF whose LZW data consists of literal codes only. With several frames it is an animation that loops for ever.
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
            // A delay of 0.1 s.
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

    /// A clear code after every 254 literals keeps the decoder's table below 512 entries, and so every code at 9 bits.
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

// MARK: - WebP

extension GeneratedImage {
    /// A lossless WebP without transforms, cache or back references: red, green and blue are codes of eight bits each.
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

    /// RFC 9649 section 3.4 ff.: size, no alpha, version 0, no transform, no colour cache, one group of five prefix codes.
    private static func losslessImage(seed: UInt64, width: Int, height: Int) -> [UInt8] {
        var bits = BitWriter()
        bits.write(width - 1, bits: 14)
        bits.write(height - 1, bits: 14)
        bits.write(0, bits: 1 + 3 + 1 + 1 + 1)
        // The green alphabet also contains 24 back-reference lengths.
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

    /// Section 3.7.2.1.2: a code length for each symbol of the alphabet, 8 for the 256 bytes and 0 for the rest. The lengths are themselves
    /// coded, with one bit each for 0 and 8: 12 entries of the order 17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8.
    private static func writeByteCode(unused: Int, _ bits: inout BitWriter) {
        bits.write(0, bits: 1)
        bits.write(12 - 4, bits: 4)
        for entry in 0..<12 { bits.write(entry == 2 || entry == 11 ? 1 : 0, bits: 3) }
        // The lengths cover the whole alphabet.
        bits.write(0, bits: 1)
        for _ in 0..<256 { bits.write(1, bits: 1) }
        for _ in 0..<unused { bits.write(0, bits: 1) }
    }

    /// Section 3.7.2.1.1: a simple code of one symbol, which needs no bits in the data; the symbol itself has 8 bits.
    private static func writeSingleSymbol(_ symbol: Int, _ bits: inout BitWriter) {
        bits.write(1, bits: 1)
        bits.write(0, bits: 1)
        bits.write(1, bits: 1)
        bits.write(symbol, bits: 8)
    }

    /// Prefix codes are read from the highest bit.
    private static func reversed(_ byte: UInt8) -> Int {
        var byte = byte, result = 0
        for _ in 0..<8 {
            result = result << 1 | Int(byte & 1)
            byte >>= 1
        }
        return result
    }
}

// MARK: - Kind

extension GeneratedImage {
    package enum Kind: String, Sendable, CaseIterable {
        case jpeg, progressiveJPEG, png, gif, animatedGIF, webp

        /// Measured with this content at quality 80.
        fileprivate var bitsPerPixel: Double {
            switch self {
            case .jpeg: 0.97
            case .progressiveJPEG: 0.87
            case .png: 13.3
            case .gif: 9.15
            case .animatedGIF: 9.15 * 3
            case .webp: 24
            }
        }
    }

    /// A square image of approximately that size, within a third from 5 KB on.
    package static func image(_ kind: Kind, seed: UInt64, approximateBytes: Int) -> [UInt8] {
        let overhead = kind == .gif || kind == .animatedGIF ? 800 : 500
        let pixels = Double(max(8, approximateBytes - overhead) * 8) / kind.bitsPerPixel
        let side = max(1, Int(pixels.squareRoot()))
        return switch kind {
        case .jpeg: jpeg(seed: seed, width: side, height: side)
        case .progressiveJPEG: jpeg(seed: seed, width: side, height: side, progressive: true)
        case .png: png(seed: seed, width: side, height: side)
        case .gif: gif(seed: seed, width: side, height: side)
        case .animatedGIF: gif(seed: seed, width: side, height: side, frames: 3)
        case .webp: webp(seed: seed, width: side, height: side)
        }
    }
}

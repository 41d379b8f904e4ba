internal import CImageCodec

/// Images for tests, `demo` and the benchmark: the same bytes for the same seed, as long as the libraries are the same.
///
/// The content is like a photograph's, soft areas with noise, so that sizes are real ones.
package enum GeneratedImage {
    /// Channels of a JPEG.
    package enum JPEGColor: Int32, Sendable, CaseIterable {
        case gray = 1
        case color = 3
        case cmyk = 4
    }

    /// Pixels of a PNG, with IHDR's numbers.
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

    /// YCbCr 4:2:0 where it has colour. `quality` is 1 to 100; `restartInterval` counts MCUs, 0 is none.
    package static func jpeg(
        seed: UInt64, width: Int, height: Int, quality: Int = 80, progressive: Bool = false, color: JPEGColor = .color,
        restartInterval: Int = 0
    ) -> [UInt8] {
        let pixels = PhotoLikePixels(seed: seed, width: width, height: height).samples(channels: Int(color.rawValue))
        var options = image_codec_jpeg_options(
            components: color.rawValue, quality: Int32(quality), progressive: progressive,
            restart_interval: UInt32(restartInterval))
        return written { image_codec_encode_jpeg(pixels, UInt32(width), UInt32(height), &options, &$0) }
    }

    /// `depth` is the bits of a sample, 8 or 16; a palette has 8.
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
                palette_count: 256)
            return written { image_codec_encode_png(pixels, UInt32(width), UInt32(height), &options, &$0) }
        }
    }

    /// Empty only on arguments the format does not allow.
    private static func written(_ encode: (inout image_codec_buffer) -> Bool) -> [UInt8] {
        var buffer = image_codec_buffer()
        defer { image_codec_release(&buffer) }
        return encode(&buffer) ? Array(UnsafeBufferPointer(start: buffer.bytes, count: buffer.count)) : []
    }
}

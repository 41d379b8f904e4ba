internal import CImageCodec

extension ImageCoder {
    /// Writes a decoded image as JPEG or PNG (`encodedDataWithImage:format:`). Blocks; a PNG takes longer than a JPEG.
    /// - Parameters:
    ///   - bitmap: the image. In a JPEG what is not opaque lies on white.
    ///   - format: `jpeg` or `png`; nil (default), as in SDWebImage: PNG where the image has alpha, otherwise JPEG.
    ///   - quality: of a JPEG, 1 to 100; 90 by default.
    /// - Returns: a whole image.
    /// - Throws: `invalidConfiguration` where the format is another one: nothing here writes GIF or WebP, so an animation is stored as the bytes it
    ///   came in, not as frames; likewise for a quality out of range. `badImageData` where the format has no images of that size; `localFault` where
    ///   memory ran out.
    public func encode(
        _ bitmap: Bitmap, as format: ImageFormat? = nil, quality: Int = 90
    ) throws(WebImageError) -> [UInt8] {
        let format = format ?? (bitmap.hasAlpha ? .png : .jpeg)
        guard (1...100).contains(quality) else {
            throw WebImageError(.invalidConfiguration, "the quality of a JPEG is 1 to 100, not \(quality)")
        }
        let longest: Int
        switch format {
        case .jpeg: longest = 65_500
        // libpng's limit.
        case .png: longest = 1_000_000
        default:
            throw WebImageError(
                .invalidConfiguration,
                "\(format.rawValue.uppercased()) cannot be written: pixels are stored as JPEG or PNG, and an animation as the bytes it came in"
            )
        }
        guard max(bitmap.width, bitmap.height) <= longest else {
            throw WebImageError(
                .badImageData,
                "\(bitmap.width) x \(bitmap.height) pixels are too large for \(format.rawValue.uppercased()): \(longest) at most along a side"
            )
        }
        let (width, height) = (UInt32(bitmap.width), UInt32(bitmap.height))
        var buffer = image_codec_buffer()
        defer { image_codec_release(&buffer) }
        let isWritten: Bool
        if format == .jpeg {
            var options = image_codec_jpeg_options(
                components: 3, quality: Int32(quality), progressive: false, restart_interval: 0)
            isWritten = image_codec_encode_jpeg(bitmap.opaquePixels, width, height, &options, &buffer)
        } else {
            var options = image_codec_png_options(
                color_type: bitmap.hasAlpha ? 6 : 2, bit_depth: 8, interlaced: false, palette: nil, palette_count: 0)
            isWritten = image_codec_encode_png(bitmap.pixels, width, height, &options, &buffer)
        }
        guard isWritten else { throw WebImageError(.localFault, "there is not enough memory to write an image") }
        return Array(UnsafeBufferPointer(start: buffer.bytes, count: buffer.count))
    }
}

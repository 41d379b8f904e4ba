extension ImageCoder {
    /// Encodes with a quality; see ``encode(_:as:options:)``.
    public func encode(
        _ bitmap: Bitmap, as format: ImageFormat? = nil, quality: Int = 90
    ) throws(WebImageError) -> [UInt8] {
        var options = ImageEncodeOptions()
        options.quality = quality
        return try encode(bitmap, as: format, options: options)
    }

    /// Encodes an image as JPEG, PNG or WebP, with its metadata (`encodedDataWithImage:format:options:`). Blocks; PNG takes longer than JPEG.
    /// - Parameters:
    ///   - bitmap: the image; its orientation is applied.
    ///   - format: `jpeg`, `png` or `webp`; nil (default) as in SDWebImage: PNG if the image has alpha, otherwise JPEG.
    ///   - options: quality, limits and background.
    /// - Returns: a complete image file.
    /// - Throws: `invalidConfiguration` for a quality out of range or another format: GIF and AVIF cannot be written, so animations are
    ///   stored as the original bytes. `unsupportedFormat` for WebP without libwebp. `badImageData` if the format does not support the
    ///   size. `localFault` if out of memory.
    public func encode(
        _ bitmap: Bitmap, as format: ImageFormat? = nil, options: ImageEncodeOptions
    ) throws(WebImageError) -> [UInt8] {
        guard (1...100).contains(options.quality) else {
            throw WebImageError(.invalidConfiguration, "the quality of an image is 1 to 100, not \(options.quality)")
        }
        var bitmap = bitmap.upright
        if let most = options.maxPixelSize {
            let size = PixelSize(width: bitmap.width, height: bitmap.height)
            bitmap = try bitmap.scaled(
                to: ImageSizing.scaledSize(of: size, to: most, preservesAspectRatio: true, scalesUp: false), by: self)
        }
        if let coder = coders?.coder(toEncode: format) { return try coder.encodedData(with: bitmap, format: format) }
        let format = format ?? (bitmap.hasAlpha ? .png : .jpeg)
        guard let limit = options.maxFileSize, format != .png else {
            return try encoded(bitmap, format, options.quality, options.background)
        }
        return try encoded(bitmap, format, options, atMost: limit)
    }

    /// At the highest quality whose file is not longer, found by halving; at quality 1, at a smaller size.
    private func encoded(
        _ bitmap: Bitmap, _ format: ImageFormat, _ options: ImageEncodeOptions, atMost limit: Int
    ) throws(WebImageError) -> [UInt8] {
        let best = try encoded(bitmap, format, options.quality, options.background)
        if best.count <= limit { return best }
        var (low, high, fitting) = (0, options.quality, [UInt8]())
        while high - low > 1 {
            let quality = (low + high) / 2
            let bytes = try encoded(bitmap, format, quality, options.background)
            if bytes.count <= limit { (low, fitting) = (quality, bytes) } else { high = quality }
        }
        guard fitting.isEmpty else { return fitting }
        guard bitmap.width > 1 || bitmap.height > 1 else { return best }
        let half = PixelSize(width: max(1, bitmap.width / 2), height: max(1, bitmap.height / 2))
        return try encoded(bitmap.scaled(to: half, by: self), format, options, atMost: limit)
    }

    private func encoded(
        _ bitmap: Bitmap, _ format: ImageFormat, _ quality: Int, _ background: ImageColor
    ) throws(WebImageError) -> [UInt8] {
        let longest = try Self.longestSide(of: format)
        guard max(bitmap.width, bitmap.height) <= longest else {
            throw WebImageError(
                .badImageData,
                "\(bitmap.width) x \(bitmap.height) pixels are too large for \(format.rawValue.uppercased()): \(longest) at most along a side"
            )
        }
        let encoded: [UInt8]?
        do throws(ImageFault) {
            encoded = try codec.encode(
                format == .jpeg ? bitmap.opaquePixels(on: background) : bitmap.pixels,
                PixelSize(width: bitmap.width, height: bitmap.height), hasAlpha: format != .jpeg && bitmap.hasAlpha,
                as: format, quality: quality, bitmap.metadata)
        } catch { throw error.error }
        guard let encoded else { throw WebImageError(.localFault, "there is not enough memory to write an image") }
        return encoded
    }

    private static func longestSide(of format: ImageFormat) throws(WebImageError) -> Int {
        switch format {
        case .jpeg: return 65_500
        // libpng's limit.
        case .png: return 1_000_000
        case .webp:
            if canDecode(.webp) { return 16_383 }
            throw WebImageError(.unsupportedFormat, "WebP cannot be written: \(ImageCodec.description(of: .webp))")
        default:
            throw WebImageError(
                .invalidConfiguration,
                "\(format.rawValue.uppercased()) cannot be written: pixels are stored as JPEG, PNG or WebP, and an animation as the bytes it came in"
            )
        }
    }
}

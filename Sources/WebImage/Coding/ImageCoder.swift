internal import CImageCodec

/// Checks whether bytes are a complete image (SDImageCoder, without the pixels).
///
/// A value type for use on any thread. No check holds a whole bitmap; checks share only the decode memory.
public struct ImageCoder: Sendable {
    /// Resource limits of an image.
    public var limits: Limits
    /// The memory budget for decoding.
    public let memory: DecodeMemory

    /// - Parameters:
    ///   - limits: resource limits of an image.
    ///   - memory: budget of all concurrent decodes, by default that of the process.
    public init(limits: Limits = Limits(), memory: DecodeMemory = .shared) {
        self.limits = limits
        self.memory = memory
    }

    /// Checks the complete bytes of a body.
    ///
    /// Bytes after the image's end are allowed. GIF and WebP are checked to their last byte at `structure`, and no further at `decode`. At
    /// `none` only an empty body is rejected; the format is returned if known, the size is not. At `decode` it blocks while other decodes
    /// use up ``memory``.
    /// - Throws: `tooLarge` if a decode needs more than ``Limits/maxMemory``. `badImageData` with the reason, and `isIncompleteImage` if
    ///   the bytes end inside the image. `unsupportedFormat` if the format is known but cannot be checked at this level. `localFault` if
    ///   out of memory.
    public func verify(_ bytes: UnsafeRawBufferPointer, level: ValidationLevel) throws(WebImageError) -> ImageInfo {
        guard !bytes.isEmpty else { throw WebImageError(.badImageData, "the body is empty") }
        let format = ImageFormat(sniffing: bytes)
        guard level > .none else {
            return ImageInfo(format: format ?? .unknown, width: 0, height: 0, level: .none)
        }
        guard let format else { throw WebImageError(.badImageData, NoImage.description(bytes)) }
        guard format.isVerifiable || level == .header else {
            throw Self.error(ImageFault(.unsupported, "\(format.rawValue.uppercased()) cannot be verified"), format)
        }
        do {
            return try check(format, bytes, level)
        } catch {
            throw Self.error(error, format)
        }
    }

    private static func error(_ fault: ImageFault, _ format: ImageFormat) -> WebImageError {
        var error = fault.error
        if error.code == .unsupportedFormat { error.unverifiedFormat = format }
        return error
    }

    /// Like ``verify(_:level:)``, but with `keep` unverifiable images pass at ``ValidationLevel/header``, which is then recorded.
    func verify(
        _ bytes: UnsafeRawBufferPointer, level: ValidationLevel, unverifiable: UnverifiableFormats
    ) throws(WebImageError) -> ImageInfo {
        do throws(WebImageError) {
            return try verify(bytes, level: level)
        } catch {
            guard error.code == .unsupportedFormat, unverifiable == .keep else { throw error }
            return try verify(bytes, level: .header)
        }
    }

    /// Checks the first bytes of a body during the transfer, to abort it early. Not for level `none`.
    /// - Returns: true if the header is complete and valid; false if more bytes are needed.
    /// - Throws: `badImageData` as soon as more bytes cannot help: text, no pixels, a size over the limits.
    public func inspectHeader(_ prefix: UnsafeRawBufferPointer) throws(WebImageError) -> Bool {
        switch FormatSniff(prefix) {
        case .undecided: return false
        case .noImage: throw WebImageError(.badImageData, NoImage.description(prefix))
        case .format(let format):
            do {
                _ = try check(format, prefix, .header)
                return true
            } catch {
                if error.kind == .incomplete { return false }
                throw error.error
            }
        }
    }

    private func check(
        _ format: ImageFormat, _ bytes: UnsafeRawBufferPointer, _ level: ValidationLevel
    ) throws(ImageFault) -> ImageInfo {
        switch format {
        case .jpeg, .png:
            return try checkByLibrary(format, bytes, level)
        case .gif:
            var reader = ByteReader(bytes, format: "GIF")
            let size = try GIFStructure(limits: limits).check(&reader, headerOnly: level == .header)
            return ImageInfo(format: format, width: size.width, height: size.height, level: level)
        case .webp:
            var reader = ByteReader(bytes, format: "WebP")
            let size = try WebPStructure(limits: limits).check(&reader, headerOnly: level == .header)
            return ImageInfo(format: format, width: size.width, height: size.height, level: level)
        case .bmp:
            let size = try BitmapHeader.size(bytes)
            try limits.check(size, format: "BMP")
            return ImageInfo(format: format, width: size.width, height: size.height, level: level)
        case .avif, .heic, .svg, .tiff, .ico, .jxl, .jp2, .unknown:
            return ImageInfo(format: format, width: 0, height: 0, level: level)
        }
    }
}

// MARK: - Encoding

extension ImageCoder {
    /// Encodes an image as JPEG or PNG (`encodedDataWithImage:format:`). Blocks; PNG takes longer than JPEG.
    /// - Parameters:
    ///   - bitmap: the image. For JPEG, transparent pixels are blended onto white.
    ///   - format: `jpeg` or `png`; nil (default) as in SDWebImage: PNG if the image has alpha, otherwise JPEG.
    ///   - quality: JPEG quality, 1 to 100; 90 by default.
    /// - Returns: a complete image file.
    /// - Throws: `invalidConfiguration` for a quality out of range or another format: GIF and WebP cannot be written, so animations are
    ///   stored as the original bytes. `badImageData` if the format does not support the size. `localFault` if out of memory.
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

// MARK: - Library

/// The only entry point to the C codecs.
extension ImageCoder {
    /// For JPEG and PNG; `bytes` must not be empty.
    private func checkByLibrary(
        _ format: ImageFormat, _ bytes: UnsafeRawBufferPointer, _ level: ValidationLevel
    ) throws(ImageFault) -> ImageInfo {
        var result = image_codec_result()
        var bounds = limits.library
        let base = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
        switch (format, level) {
        case (.png, .header), (.png, .none): image_codec_png_header(base, bytes.count, &bounds, &result)
        case (.png, _): image_codec_png_structure(base, bytes.count, &bounds, &result)
        case (_, .header), (_, .none): image_codec_jpeg_header(base, bytes.count, &bounds, &result)
        case (_, _): image_codec_jpeg_structure(base, bytes.count, &bounds, &result)
        }
        if level == .decode, result.status == IMAGE_CODEC_WHOLE.rawValue {
            let need = Int(clamping: result.memory)
            guard need <= limits.maxMemory else {
                throw ImageFault(
                    .overMemory,
                    "\(result.width) x \(result.height) pixels that take \(Self.mebibytes(need)) to decode, the limit is \(Self.mebibytes(limits.maxMemory))"
                )
            }
            memory.acquire(need)
            defer { memory.release(need) }
            switch format {
            case .png: image_codec_png_decode(base, bytes.count, &bounds, &result)
            default: image_codec_jpeg_decode(base, bytes.count, &bounds, &result)
            }
        }
        if let kind = Self.kind(result.status) {
            throw ImageFault(kind, String(cString: image_codec_message(&result)))
        }
        let warnings = (0..<result.warning_count).map { String(cString: image_codec_warning(&result, $0)) }
        return ImageInfo(
            format: format, width: Int(result.width), height: Int(result.height), level: level, warnings: warnings)
    }

    private static func mebibytes(_ count: Int) -> String {
        let tenths = count / (1 << 20) * 10 + count % (1 << 20) * 10 / (1 << 20)
        return "\(tenths / 10).\(tenths % 10) MiB"
    }

    private static func kind(_ status: Int32) -> ImageFault.Kind? {
        switch UInt32(bitPattern: status) {
        case IMAGE_CODEC_WHOLE.rawValue: nil
        case IMAGE_CODEC_INCOMPLETE.rawValue: .incomplete
        case IMAGE_CODEC_UNSUPPORTED.rawValue: .unsupported
        case IMAGE_CODEC_OVER_LIMIT.rawValue: .overLimit
        case IMAGE_CODEC_NO_MEMORY.rawValue: .outOfMemory
        default: .damaged
        }
    }
}

extension ImageCoder.Limits {
    fileprivate var library: image_codec_limits {
        image_codec_limits(
            max_dimension: UInt32(clamping: maxDimension), max_pixels: UInt64(clamping: maxPixels),
            max_scans: UInt32(clamping: maxScans), max_frames: UInt32(clamping: maxFrames),
            max_frame_pixels: UInt64(clamping: maxFramePixels), max_memory: UInt64(clamping: maxMemory),
            cpu_nanoseconds: UInt64(clamping: cpuNanoseconds),
            cpu_nanoseconds_per_pixel: UInt64(clamping: cpuNanosecondsPerPixel))
    }
}

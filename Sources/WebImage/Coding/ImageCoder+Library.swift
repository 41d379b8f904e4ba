internal import CImageCodec

/// The only entrance to the C codecs.
extension ImageCoder {
    /// JPEG and PNG; `bytes` is not empty.
    func checkByLibrary(
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

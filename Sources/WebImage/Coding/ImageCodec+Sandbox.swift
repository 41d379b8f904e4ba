internal import CImageCodec

/// The same calls, made in a child.
extension ImageCodec {
    /// Of the budget of a decode: both decoders of an AVIF see it, pixels are converted and filtered after they are decoded, and what is encoded or
    /// resized is not a stranger's, but may take ten times as long.
    private enum Share {
        static let decoded: UInt64 = 1, pixels: UInt64 = 2, avif: UInt64 = 2, made: UInt64 = 10
    }

    func decode(
        _ request: image_codec_request, _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat,
        _ level: ValidationLevel,
        _ known: ImageInfo?, in sandbox: CodecSandbox
    ) throws(ImageFault) -> Result {
        var call = codec_call()
        call.operation = CODEC_RUN.rawValue
        call.request = request
        call.count = UInt64(request.count)
        let isBitmap = request.task == IMAGE_CODEC_PIXELS.rawValue
        if let known {
            (call.known_width, call.known_height) = (UInt32(clamping: known.width), UInt32(clamping: known.height))
        }
        let frames = isBitmap ? min(Int(request.frames), known?.frameCount ?? 1) : known?.frameCount ?? 1
        if isBitmap {
            call.room = UInt64(clamping: limits.maxMemory) + 4 * UInt64(frames) + UInt64(CODEC_METADATA)
        }
        var share = isBitmap ? Share.pixels : Share.decoded
        if format == .avif { share *= Share.avif }
        let pixels = known.map { ($0.width * $0.height).multipliedReportingOverflow(by: frames) }
        let budget = budget(bytes: bytes.count, pixels: pixels.map { $0.overflow ? .max : $0.partialValue } ?? 0)
        let answer = try sandbox.run(
            CodecSandbox.Call(
                record: call, subject: format.rawValue.uppercased(), file: file,
                nanoseconds: max(budget * share, request.spent + 1_000_000) - request.spent), bytes)
        var record = answer.record
        if let kind = Self.kind(Int32(bitPattern: record.status)) {
            throw ImageFault(kind, String(cString: codec_message(&record)))
        }
        return Self.result(&record, answer, format, level)
    }

    func encode(
        _ pixels: [UInt8], _ size: PixelSize, hasAlpha: Bool, as format: ImageFormat, quality: Int,
        _ metadata: ImageMetadata, in sandbox: CodecSandbox
    ) throws(ImageFault) -> [UInt8]? {
        var call = codec_call()
        call.operation = CODEC_ENCODE.rawValue
        call.request.format = Self.code(format) ?? 0
        call.request.limits = bounds
        (call.width, call.height) = (UInt32(size.width), UInt32(size.height))
        (call.channels, call.quality) = (hasAlpha ? 4 : 3, UInt32(quality))
        (call.exif, call.icc) = (UInt64(metadata.exif.count), UInt64(metadata.iccProfile.count))
        let input = pixels + metadata.exif + metadata.iccProfile
        call.count = UInt64(input.count)
        // What no encoder needs: noise in PNG is a little longer than its pixels.
        call.room = 2 * UInt64(input.count) + 1 << 20
        return try make(call, input, format.rawValue.uppercased(), size, in: sandbox)
    }

    /// Resized pixels.
    func resample(
        _ request: image_resample_request, _ pixels: [UInt8], count: Int, in sandbox: CodecSandbox
    ) throws(ImageFault) -> [UInt8] {
        var call = codec_call()
        call.operation = CODEC_RESAMPLE.rawValue
        call.request.limits = bounds
        call.resample = request
        (call.count, call.room) = (UInt64(pixels.count), UInt64(count))
        let size = PixelSize(width: Int(request.width), height: Int(request.height))
        return try make(call, pixels, "an image", size, in: sandbox)
    }

    /// What is made of pixels of our own.
    private func make(
        _ call: codec_call, _ input: [UInt8], _ subject: String, _ size: PixelSize, in sandbox: CodecSandbox
    ) throws(ImageFault) -> [UInt8] {
        var call = call
        // The pixels that come back are no part of what the limit is for.
        call.request.limits.max_memory += call.room
        let nanoseconds = budget(bytes: input.count, pixels: size.width * size.height) * Share.made
        let answer = try input.span.withUnsafeBytes { bytes throws(ImageFault) in
            try sandbox.run(
                CodecSandbox.Call(record: call, subject: subject, file: nil, nanoseconds: nanoseconds), bytes)
        }
        var record = answer.record
        if let kind = Self.kind(Int32(bitPattern: record.status)) {
            throw ImageFault(kind, String(cString: codec_message(&record)))
        }
        return answer.pixels
    }

    /// Nanoseconds of processor time.
    private func budget(bytes: Int, pixels: Int) -> UInt64 {
        var bounds = bounds
        return image_codec_cpu_limit(&bounds, UInt64(bytes), UInt64(pixels))
    }

    private static func result(
        _ record: inout codec_answer, _ answer: CodecSandbox.Answer, _ format: ImageFormat, _ level: ValidationLevel
    ) -> Result {
        let warnings = (0..<Int32(record.warning_count)).map { String(cString: codec_warning(&record, $0)) }
        let info = ImageInfo(
            format: format, width: Int(record.width), height: Int(record.height), level: level,
            orientation: ImageOrientation(exif: Int(record.orientation)), frameCount: Int(record.frame_count),
            hasAlpha: record.has_alpha == 1, colorSpace: colorSpace(Int32(record.color)), warnings: warnings)
        var made = Result(info: info, memory: Int(clamping: record.memory), loopCount: Int(record.loop_count))
        guard record.pixel_frames > 0 else { return made }
        let rest = answer.rest, durations = Int(record.durations), exif = durations + Int(record.exif)
        made.pixels = Pixels(
            size: PixelSize(width: Int(record.pixel_width), height: Int(record.pixel_height)),
            hasAlpha: record.channels == 4, bytes: answer.pixels, frames: Int(record.pixel_frames),
            rows: Int(record.rows),
            milliseconds: rest.span.withUnsafeBytes { all in
                (0..<Int(record.pixel_frames)).map {
                    Int(all.loadUnaligned(fromByteOffset: 4 * $0, as: UInt32.self))
                }
            },
            metadata: ImageMetadata(exif: Array(rest[durations..<exif]), iccProfile: Array(rest[exif...])))
        return made
    }
}

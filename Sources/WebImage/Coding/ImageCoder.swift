/// Checks whether bytes are a complete image, decodes and encodes it (SDImageCoder).
///
/// A value type for use on any thread. No check of a JPEG or a large PNG holds a whole bitmap; checks share only the decode memory.
public struct ImageCoder: Sendable {
    /// Resource limits of an image.
    public var limits: Limits
    /// The memory budget for decoding.
    public let memory: DecodeMemory
    /// Coders that are asked before the built-in ones; nil: none.
    public let coders: ImageCodersManager?
    /// The processes that decode; nil: this one.
    public let sandbox: CodecSandbox?
    private var file: Int32?

    /// - Parameters:
    ///   - limits: resource limits of an image.
    ///   - memory: budget of all concurrent decodes, by default that of the process.
    ///   - coders: coders of a program's own; default nil. They run in this process.
    ///   - sandbox: the processes that decode, by default that of the process: none unless `prefetch-codec` is beside the program that runs
    ///     (``CodecSandbox/shared``). nil decodes in this process.
    public init(
        limits: Limits = Limits(), memory: DecodeMemory = .shared, coders: ImageCodersManager? = nil,
        sandbox: CodecSandbox? = .shared
    ) {
        self.limits = limits
        self.memory = memory
        self.coders = coders
        self.sandbox = sandbox
    }

    /// The same coder for the bytes of a body, whose file it may hand on.
    func reading(_ body: ImageBody) -> ImageCoder {
        var coder = self
        coder.file = body.fileDescriptor
        return coder
    }

    var codec: ImageCodec { ImageCodec(limits: limits, sandbox: sandbox, file: file) }

    /// Whether images of a format can be decoded: JPEG, PNG and GIF always, WebP and AVIF if their libraries are installed.
    public static func canDecode(_ format: ImageFormat) -> Bool { ImageCodec.canDecode(format) }

    // MARK: Checking

    /// Checks the complete bytes of a body.
    ///
    /// Bytes after the image's end are allowed. At `decode` every frame is decoded. At `none` only an empty body is rejected; the format is
    /// returned if known, the size is not. At `decode` it blocks while other decodes use up ``memory``.
    /// - Throws: `tooLarge` if the image is more than one of the ``limits``. `badImageData` with the reason, and `isIncompleteImage` if
    ///   the bytes end inside the image. `unsupportedFormat` if the format is known but cannot be checked at this level. `localFault` if
    ///   out of memory.
    public func verify(_ bytes: UnsafeRawBufferPointer, level: ValidationLevel) throws(WebImageError) -> ImageInfo {
        guard !bytes.isEmpty else { throw WebImageError(.badImageData, "the body is empty") }
        if let coder = coders?.coder(toDecode: bytes) {
            return try check(bytes, by: coder, level)
        }
        let format = ImageFormat(sniffing: bytes)
        guard level > .none else {
            return ImageInfo(format: format ?? .unknown, width: 0, height: 0, level: .none)
        }
        guard let format else { throw NoImage.error(bytes) }
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
    /// - Returns: what the header says, if it is complete and valid; nil if more bytes are needed. The orientation may follow later in PNG
    ///   and WebP, and only ``verify(_:level:)`` counts frames. Of a coder of the program's own the size is unknown.
    /// - Throws: as soon as more bytes cannot help: `badImageData` for text and for no pixels, `tooLarge` for a size over the limits.
    public func inspectHeader(_ prefix: UnsafeRawBufferPointer) throws(WebImageError) -> ImageInfo? {
        if coders?.coder(toDecode: prefix) != nil {
            return ImageInfo(format: .unknown, width: 0, height: 0, level: .header)
        }
        switch FormatSniff(prefix) {
        case .undecided: return nil
        case .noImage: throw NoImage.error(prefix)
        case .format(let format):
            do {
                return try check(format, prefix, .header)
            } catch {
                if error.kind == .incomplete { return nil }
                throw error.error
            }
        }
    }

    private func check(
        _ format: ImageFormat, _ bytes: UnsafeRawBufferPointer, _ level: ValidationLevel
    ) throws(ImageFault) -> ImageInfo {
        switch format {
        case .webp:
            var reader = ByteReader(bytes, format: "WebP")
            let structure = WebPStructure(limits: limits)
            var info = try structure.check(&reader, headerOnly: level == .header)
            if level == .decode {
                let proof = try prove(info, bytes, memory: 0)
                if proof.result == nil {
                    let size = PixelSize(width: info.width, height: info.height)
                    try limits.check(size, format: "WebP", wholeKind: "WebP")
                    _ = try decode(info, bytes, memory: structure.memory(bytes, info).check, proof)
                }
            }
            info.level = level
            return info
        case .jpeg, .png, .gif, .avif:
            let structure = try codec.run(level == .header ? .header : .structure, format, bytes, level: level)
            guard level == .decode else { return structure.info }
            let warnings = try decode(structure, bytes)
            var info = structure.info
            // libjpeg and the GIF decoder report the same again, libpng does not.
            info.warnings = format == .png ? info.warnings + warnings : warnings
            return info
        case .bmp where level == .header:
            let size = try BitmapHeader.size(bytes)
            try limits.check(size, format: "BMP")
            return ImageInfo(format: format, width: size.width, height: size.height, level: level)
        case .heic, .svg, .tiff, .ico, .jxl, .jp2, .bmp, .unknown:
            guard level == .header else {
                throw ImageFault(.unsupported, "\(format.rawValue.uppercased()) cannot be verified")
            }
            return ImageInfo(format: format, width: 0, height: 0, level: level)
        }
    }

    /// - Returns: the warnings.
    private func decode(
        _ structure: ImageCodec.Result, _ bytes: UnsafeRawBufferPointer
    ) throws(ImageFault) -> [String] {
        let info = structure.info
        let proof = try prove(info, bytes, memory: structure.proofMemory, spent: structure.spent)
        if let result = proof.result { return result.info.warnings }
        if let kind = structure.wholeKind {
            let size = PixelSize(width: info.width, height: info.height)
            try limits.check(size, format: "JPEG", wholeKind: kind)
        }
        return try decode(info, bytes, memory: structure.memory, proof)
    }

    /// What own readers say, unless they may not have the memory.
    private func prove(
        _ info: ImageInfo, _ bytes: UnsafeRawBufferPointer, memory need: Int, spent: UInt64 = 0
    ) throws(ImageFault) -> ImageCodec.Proof {
        guard need <= limits.maxMemory, info.format != .avif else { return ImageCodec.Proof(spent: spent) }
        // Nothing is to be waited for.
        if need == 0 { return try codec.prove(info.format, bytes, spent: spent) }
        return try withMemory(need, for: info) { () throws(ImageFault) in
            try codec.prove(info.format, bytes, spent: spent)
        }
    }

    private func decode(
        _ info: ImageInfo, _ bytes: UnsafeRawBufferPointer, memory need: Int, _ proof: ImageCodec.Proof
    ) throws(ImageFault) -> [String] {
        try withMemory(need, for: info) { () throws(ImageFault) in
            try codec.run(.check, info.format, bytes, level: .decode, known: info, proof: proof).info.warnings
        }
    }

    private func withMemory<Result>(
        _ need: Int, for info: ImageInfo, _ body: () throws(ImageFault) -> Result
    ) throws(ImageFault) -> Result {
        guard need <= limits.maxMemory else {
            throw ImageFault(
                .overLimit(.decodeMemory),
                "\(info.width) x \(info.height) pixels that take \(Self.mebibytes(need)) to decode, the limit is \(Self.mebibytes(limits.maxMemory)) (--max-decode-memory raises it)"
            )
        }
        memory.acquire(need)
        defer { memory.release(need) }
        return try body()
    }

    private static func mebibytes(_ count: Int) -> String {
        let tenths = count / (1 << 20) * 10 + count % (1 << 20) * 10 / (1 << 20)
        return "\(tenths / 10).\(tenths % 10) MiB"
    }

    private func check(
        _ bytes: UnsafeRawBufferPointer, by coder: any ImageCoding, _ level: ValidationLevel
    ) throws(WebImageError) -> ImageInfo {
        guard level == .decode else { return ImageInfo(format: .unknown, width: 0, height: 0, level: level) }
        let bitmap = try coder.decodedImage(with: bytes, options: ImageDecodeOptions())
        return ImageInfo(
            format: ImageFormat(sniffing: bytes) ?? .unknown, width: bitmap.width, height: bitmap.height, level: level,
            hasAlpha: bitmap.hasAlpha, colorSpace: .rgb)
    }

    // MARK: Decoding

    /// Decodes an image, of an animation the first frame (`decodedImageWithData:options:`). Blocks while other decodes use up ``memory``.
    ///
    /// Pixels are 8-bit RGB, or RGBA if the file may be transparent. Grey and indexed images are expanded, 16-bit samples lose their low byte,
    /// CMYK and YCCK are converted without a profile (Adobe's inverted values are put right).
    /// - Throws: as ``verify(_:level:)`` at `decode`, unless the options ask for a partial image; `tooLarge` if the bitmap does not fit
    ///   ``Limits/maxMemory``.
    public func decode(
        _ bytes: UnsafeRawBufferPointer, options: ImageDecodeOptions = ImageDecodeOptions()
    ) throws(WebImageError) -> Bitmap {
        if let coder = coders?.coder(toDecode: bytes) {
            let image = try coder.decodedImage(with: bytes, options: options)
            guard let sizing = options.sizing else { return image }
            return try image.resized(sizing, of: PixelSize(width: image.width, height: image.height), by: self)
        }
        let (result, pixels) = try pixels(of: bytes, frames: 1, options)
        return try finish(pixels, frame: 0, result.info, options)
    }

    /// Decodes all frames of an animation (`SDImageFrame`); a still image has one.
    /// - Throws: as ``decode(_:options:)``.
    public func decodeFrames(
        _ bytes: UnsafeRawBufferPointer, options: ImageDecodeOptions = ImageDecodeOptions()
    ) throws(WebImageError) -> AnimatedImage {
        if let coder = coders?.coder(toDecode: bytes) {
            let image = try coder.decodedImage(with: bytes, options: options)
            return AnimatedImage(frames: [.init(image: image, duration: .zero)], loopCount: 1)
        }
        let (result, pixels) = try pixels(of: bytes, frames: limits.maxFrames, options)
        var frames: [AnimatedImage.Frame] = []
        for (index, milliseconds) in pixels.milliseconds.enumerated() {
            let image = try finish(pixels, frame: index, result.info, options)
            frames.append(.init(image: image, duration: .milliseconds(milliseconds)))
        }
        return AnimatedImage(frames: frames, loopCount: result.loopCount)
    }

    private func pixels(
        of bytes: UnsafeRawBufferPointer, frames: Int, _ options: ImageDecodeOptions
    ) throws(WebImageError) -> (ImageCodec.Result, ImageCodec.Pixels) {
        guard let format = ImageFormat(sniffing: bytes) else {
            throw bytes.isEmpty ? WebImageError(.badImageData, "the body is empty") : NoImage.error(bytes)
        }
        do throws(ImageFault) {
            let (info, decoder, isPartial) = try survey(format, bytes, frames: frames, options)
            let wanted = options.storedSizing(of: info)
            let minimum =
                wanted?.leastSize(of: PixelSize(width: info.width, height: info.height)) ?? options.minimumSize
            let sizing = frames == 1 && !isPartial ? wanted : nil
            let tables = format == .webp ? try WebPStructure(limits: limits).memory(bytes, info).tables : 0
            let need =
                if let sizing {
                    Self.resamplingMemory(info, decoder, sizing, isInterlaced: format == .png && bytes[28] != 0)
                } else {
                    Self.pixelMemory(info, decoder, frames: min(frames, info.frameCount), minimum)
                }
            let result = try withMemory(need + tables, for: info) { () throws(ImageFault) in
                try codec.run(
                    .pixels(frames: frames, minimumSize: minimum, sizing: sizing, isPartial: isPartial), format,
                    bytes, level: .decode, known: info)
            }
            guard let pixels = result.pixels else { throw ImageFault(.damaged, "an image without pixels") }
            var complete = result
            if format == .webp { complete.info.orientation = info.orientation }
            return (complete, pixels.oriented(complete.info.orientation))
        } catch {
            throw Self.error(error, format)
        }
    }

    /// What is there, the bytes that libjpeg allocates for a JPEG, and whether it is decoded as far as it goes: not an animation that is whole,
    /// nor a format whose decoder needs all bytes.
    private func survey(
        _ format: ImageFormat, _ bytes: UnsafeRawBufferPointer, frames: Int, _ options: ImageDecodeOptions
    ) throws(ImageFault) -> (info: ImageInfo, decoder: Int, isPartial: Bool) {
        guard options.isPartial, format == .jpeg || format == .png else {
            guard format == .jpeg else { return (try check(format, bytes, .structure), 0, false) }
            let structure = try codec.run(.structure, format, bytes, level: .structure)
            // For an eighth of its size; at its own, more rows of blocks.
            return (structure.info, structure.memory + 256 * structure.info.width, false)
        }
        if frames > 1, let info = try? check(format, bytes, .structure), info.isAnimated { return (info, 0, false) }
        let info = try check(format, bytes, .header)
        // The scans that are to come may be several.
        return (info, format == .jpeg ? 6 * info.width * info.height : 0, true)
    }

    /// Bitmaps at 4 bytes a pixel, what draws an animation, and what the library keeps of the image.
    private static func pixelMemory(_ info: ImageInfo, _ decoder: Int, frames: Int, _ minimum: PixelSize?) -> Int {
        var (width, height) = (info.width, info.height)
        if info.format == .jpeg, let minimum {
            while width / 2 >= minimum.width, height / 2 >= minimum.height, width * 8 > info.width {
                (width, height) = (width / 2, height / 2)
            }
        }
        let bitmap = 4 * width * height
        let kept = info.format == .jpeg ? decoder : 2 * bitmap
        return bitmap * frames + kept + 1 << 20
    }

    /// The bitmap, what filters it, and what has to be there as a whole: the coefficients of a progressive JPEG, the pixels of an
    /// interlaced PNG, the indices of a GIF, what libwebp and libavif decode.
    private static func resamplingMemory(
        _ info: ImageInfo, _ decoder: Int, _ sizing: ImageSizing, isInterlaced: Bool
    ) -> Int {
        let image = PixelSize(width: info.width, height: info.height)
        let pixels = image.width * image.height, bitmap = 4 * sizing.scaled.width * sizing.scaled.height
        let filter = Resampling.scratchMemory(image, hasAlpha: true, sizing)
        // The size that libwebp reduces the whole image to, before it is filtered.
        let least = sizing.leastSize(of: image)
        let kept =
            switch info.format {
            case .jpeg: decoder
            case .png: isInterlaced ? 4 * pixels : 0
            case .gif: pixels
            case .webp where !info.hasAlpha && !info.isAnimated:
                4 * pixels + min(4 * pixels, 4 * (least.width + 1) * (least.height + 1))
            default: 8 * pixels
            }
        return bitmap + filter + kept + 1 << 20
    }

    private func finish(
        _ pixels: ImageCodec.Pixels, frame: Int, _ info: ImageInfo, _ options: ImageDecodeOptions
    ) throws(WebImageError) -> Bitmap {
        let count = pixels.size.width * pixels.size.height * (pixels.hasAlpha ? 4 : 3)
        let bytes = pixels.frames == 1 ? pixels.bytes : Array(pixels.bytes[count * frame..<count * (frame + 1)])
        var bitmap = Bitmap(pixels.size, hasAlpha: pixels.hasAlpha, checked: bytes)
        bitmap.decodedRows = pixels.rows
        bitmap.metadata = pixels.metadata
        bitmap.orientation = pixels.orientation
        bitmap.scale = max(1, options.scale)
        // Frames of an animation, and what is there in part, keep their size until here.
        if let sizing = options.storedSizing(of: info), pixels.size != sizing.scaled {
            let rows = bitmap.decodedRows * sizing.scaled.height / bitmap.height
            bitmap = try bitmap.resized(sizing, of: PixelSize(width: info.width, height: info.height), by: self)
            bitmap.decodedRows = rows
        }
        return options.appliesOrientation ? bitmap.upright : bitmap
    }
}

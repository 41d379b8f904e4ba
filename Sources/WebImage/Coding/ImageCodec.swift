internal import CImageCodec

/// The only entry point to the C codecs: a request in, a result out. What needs a library of a format goes to a child where there is a sandbox.
struct ImageCodec {
    enum Task {
        case header, structure, check
        /// * `frames`: how many, from the first on.
        /// * `minimumSize`: for a JPEG, decodes at 1/8, 1/4 or 1/2 of its size if that is at least this.
        /// * `sizing`: of one frame, of which a part gets another size while it is decoded; nil: it keeps its own.
        /// * `isPartial`: decodes as far as the bytes go.
        case pixels(frames: Int, minimumSize: PixelSize?, sizing: ImageSizing?, isPartial: Bool)
    }

    /// Pixels of one or more frames, one after the other.
    struct Pixels {
        var size: PixelSize
        var hasAlpha: Bool
        var bytes: [UInt8]
        var frames: Int
        var rows: Int
        var milliseconds: [Int]
        var metadata: ImageMetadata
        var orientation = ImageOrientation.up

        func oriented(_ orientation: ImageOrientation) -> Pixels {
            var pixels = self
            pixels.orientation = orientation
            return pixels
        }
    }

    struct Result {
        var info: ImageInfo
        /// Bytes that the task `check` allocates for what is not proved, and those that ``ImageCodec/prove(_:_:spent:)`` does.
        var memory: Int
        var proofMemory = 0
        /// Of a JPEG of which libjpeg keeps the whole image: what it is, in words.
        var wholeKind: String?
        var loopCount: Int
        /// Nanoseconds of processor time that it took, of this call and of those before it for the same file.
        var spent: UInt64 = 0
        var pixels: Pixels?
    }

    /// What own readers say of image data.
    struct Proof {
        /// nil: the library has to decide.
        var result: Result?
        /// What it has to decide on.
        fileprivate var proof = IMAGE_CODEC_PROOF_OPEN
        fileprivate var count: Int?
        /// Nanoseconds of processor time, with those before.
        var spent: UInt64

        /// Of what nobody has looked at.
        init(spent: UInt64 = 0) { self.spent = spent }

        fileprivate init(_ result: Result) { (self.result, spent) = (result, result.spent) }

        fileprivate init(_ said: image_codec_result, spent: UInt64) {
            (proof, count) = (image_codec_proof(UInt32(said.proof)), said.undecided)
            self.spent = spent + said.spent
        }
    }

    let limits: ImageCoder.Limits
    var sandbox: CodecSandbox?
    /// A file that has the bytes of each call.
    var file: Int32?

    /// Whether the library of a format is there; loads libwebp and libavif.
    static func canDecode(_ format: ImageFormat) -> Bool {
        code(format).map(image_codec_can_decode) ?? false
    }

    /// Bytes that libwebp takes for the prefix codes of lossless data.
    /// * `steps`: those that reading them took are added.
    static func tableMemory(
        lossless data: UnsafeRawBufferPointer, _ size: PixelSize, steps: inout UInt64
    ) -> Int {
        let bytes = data.assumingMemoryBound(to: UInt8.self).baseAddress
        return Int(
            clamping: image_codec_vp8l_tables(bytes, data.count, UInt32(size.width), UInt32(size.height), &steps))
    }

    static var versions: String { String(cString: image_codec_libraries()) }

    /// For example `libwebp 1.2.4` or `libavif.so.15 is not installed`.
    static func description(of format: ImageFormat) -> String {
        var text = [CChar](repeating: 0, count: IMAGE_CODEC_TEXT)
        if let code = code(format) { image_codec_describe(code, &text) }
        return text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }

    static func code(_ format: ImageFormat) -> Int32? {
        switch format {
        case .jpeg: Int32(IMAGE_CODEC_JPEG.rawValue)
        case .png: Int32(IMAGE_CODEC_PNG.rawValue)
        case .gif: Int32(IMAGE_CODEC_GIF.rawValue)
        case .webp: Int32(IMAGE_CODEC_WEBP.rawValue)
        case .avif: Int32(IMAGE_CODEC_AVIF.rawValue)
        case .heic, .svg, .tiff, .bmp, .ico, .jxl, .jp2, .unknown: nil
        }
    }

    private func request(
        _ task: image_codec_task, _ format: ImageFormat, _ count: Int
    ) throws(ImageFault) -> image_codec_request {
        guard let code = Self.code(format) else {
            throw ImageFault(.unsupported, "\(format.rawValue.uppercased()) cannot be verified")
        }
        var request = image_codec_request()
        (request.format, request.task, request.count) = (code, Int32(task.rawValue), count)
        request.limits = bounds
        request.frames = 1
        return request
    }

    /// Proves image data without a library of their format, in this process, as far as it can. The structure has been checked.
    /// * `spent`: nanoseconds of processor time that earlier calls for the file took.
    func prove(
        _ format: ImageFormat, _ bytes: UnsafeRawBufferPointer, spent: UInt64
    ) throws(ImageFault) -> Proof {
        var request = try request(IMAGE_CODEC_PROVE, format, bytes.count)
        request.spent = spent
        var said = image_codec_result()
        if let result = try carryOut(&request, bytes, format, .decode, &said) {
            return Proof(result)
        }
        return Proof(said, spent: spent)
    }

    /// * `known`: what the structure says, where that has been checked.
    /// * `proof`: of a check, what is known beside.
    func run(
        _ task: Task, _ format: ImageFormat, _ bytes: UnsafeRawBufferPointer, level: ValidationLevel,
        known: ImageInfo? = nil, proof: Proof = Proof()
    ) throws(ImageFault) -> Result {
        var request = try request(IMAGE_CODEC_CHECK, format, proof.count ?? bytes.count)
        (request.proof, request.spent) = (Int32(proof.proof.rawValue), proof.spent)
        switch task {
        case .header: request.task = Int32(IMAGE_CODEC_HEADER.rawValue)
        case .structure: request.task = Int32(IMAGE_CODEC_STRUCTURE.rawValue)
        case .check: break
        case .pixels(let frames, let minimumSize, let sizing, let isPartial):
            request.task = Int32(IMAGE_CODEC_PIXELS.rawValue)
            request.frames = UInt32(clamping: frames)
            request.min_width = UInt32(clamping: minimumSize?.width ?? 0)
            request.min_height = UInt32(clamping: minimumSize?.height ?? 0)
            request.partial = isPartial
            if let sizing {
                request.to_width = UInt32(clamping: sizing.scaled.width)
                request.to_height = UInt32(clamping: sizing.scaled.height)
                (request.left, request.top) = (sizing.left, sizing.top)
                (request.right, request.bottom) = (sizing.right, sizing.bottom)
            }
        }
        if needsLibrary(task, format), let sandbox, sandbox.isUsed {
            return try decode(request, bytes, format, level, known, in: sandbox)
        }
        var result = image_codec_result()
        guard let made = try carryOut(&request, bytes, format, level, &result) else {
            throw ImageFault(.damaged, "\(format.rawValue.uppercased()) that nobody decides on")
        }
        return made
    }

    /// Whether others than our own readers see the bytes.
    private func needsLibrary(_ task: Task, _ format: ImageFormat) -> Bool {
        switch task {
        case .header: false
        case .structure: format == .avif
        case .check: true
        case .pixels: true
        }
    }

    /// In this process; nil if a library has to decide.
    private func carryOut(
        _ request: inout image_codec_request, _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat,
        _ level: ValidationLevel, _ result: inout image_codec_result
    ) throws(ImageFault) -> Result? {
        request.bytes = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
        image_codec_run(&request, &result)
        defer { image_codec_release_result(&result) }
        request.bytes = nil
        if result.status == IMAGE_CODEC_UNDECIDED.rawValue { return nil }
        if let kind = Self.kind(result.status) {
            throw ImageFault(kind, String(cString: image_codec_message(&result)))
        }
        return Self.result(&result, format, level, spent: request.spent)
    }

    private static func result(
        _ result: inout image_codec_result, _ format: ImageFormat, _ level: ValidationLevel, spent: UInt64
    ) -> Result {
        let warnings = (0..<result.warning_count).map { String(cString: image_codec_warning(&result, $0)) }
        let info = ImageInfo(
            format: format, width: Int(result.width), height: Int(result.height), level: level,
            orientation: ImageOrientation(exif: Int(result.orientation)), frameCount: Int(result.frame_count),
            hasAlpha: result.has_alpha, colorSpace: colorSpace(result.color), warnings: warnings)
        var made = Result(info: info, memory: Int(clamping: result.memory), loopCount: Int(result.loop_count))
        made.spent = spent + result.spent
        made.proofMemory = Int(clamping: result.proof_memory)
        made.wholeKind = wholeKind(result.whole)
        guard result.pixel_frames > 0 else { return made }
        made.pixels = Pixels(
            size: PixelSize(width: Int(result.pixel_width), height: Int(result.pixel_height)),
            hasAlpha: result.channels == 4, bytes: array(result.pixels), frames: Int(result.pixel_frames),
            rows: Int(result.rows),
            milliseconds: (0..<Int(result.pixel_frames)).map { frame in
                Int(UnsafeRawPointer(result.durations.bytes).load(fromByteOffset: 4 * frame, as: UInt32.self))
            },
            metadata: ImageMetadata(exif: array(result.exif), iccProfile: array(result.icc)))
        return made
    }

    private static func wholeKind(_ code: Int32) -> String? {
        switch UInt32(bitPattern: code) {
        case IMAGE_CODEC_PROGRESSIVE.rawValue: "progressive JPEG"
        case IMAGE_CODEC_SCANS.rawValue: "JPEG of several scans"
        default: nil
        }
    }

    private static func array(_ buffer: image_codec_buffer) -> [UInt8] {
        Array(UnsafeBufferPointer(start: buffer.bytes, count: buffer.count))
    }

    static func colorSpace(_ code: Int32) -> ImageColorSpace {
        switch UInt32(bitPattern: code) {
        case IMAGE_CODEC_COLOR_GRAY.rawValue: .gray
        case IMAGE_CODEC_COLOR_RGB.rawValue: .rgb
        case IMAGE_CODEC_COLOR_INDEXED.rawValue: .indexed
        case IMAGE_CODEC_COLOR_CMYK.rawValue: .cmyk
        case IMAGE_CODEC_COLOR_YCCK.rawValue: .ycck
        default: .unknown
        }
    }

    static func kind(_ status: Int32) -> ImageFault.Kind? {
        switch UInt32(bitPattern: status) {
        case IMAGE_CODEC_WHOLE.rawValue: nil
        case IMAGE_CODEC_INCOMPLETE.rawValue: .incomplete
        case IMAGE_CODEC_UNSUPPORTED.rawValue: .unsupported
        case IMAGE_CODEC_OVER_LIMIT.rawValue: .overLimit(.codecLimit)
        case IMAGE_CODEC_OVER_PIXELS.rawValue: .overLimit(.pixels)
        case IMAGE_CODEC_OVER_MEMORY.rawValue: .overLimit(.decodeMemory)
        case IMAGE_CODEC_OVER_DECODING.rawValue: .overLimit(.decodeTime)
        case IMAGE_CODEC_OVER_SIDE.rawValue: .overLimit(.resizedSide)
        case IMAGE_CODEC_NO_MEMORY.rawValue: .outOfMemory
        default: .damaged
        }
    }

    // MARK: Metadata

    static func orientation(ofEXIF exif: UnsafeRawBufferPointer) -> ImageOrientation {
        let base = exif.assumingMemoryBound(to: UInt8.self).baseAddress
        return ImageOrientation(exif: Int(image_codec_exif_orientation(base, exif.count)))
    }

    /// The same EXIF data with the orientation `up`.
    static func upright(exif: [UInt8]) -> [UInt8] {
        var exif = exif
        image_codec_exif_set_orientation(&exif, exif.count, 1)
        return exif
    }

    // MARK: Encoding

    /// Encodes RGB or RGBA as JPEG (RGB only), PNG or WebP; nil if there is no memory, or no library.
    func encode(
        _ pixels: [UInt8], _ size: PixelSize, hasAlpha: Bool, as format: ImageFormat, quality: Int,
        _ metadata: ImageMetadata
    ) throws(ImageFault) -> [UInt8]? {
        if let sandbox, sandbox.isUsed {
            return try encode(pixels, size, hasAlpha: hasAlpha, as: format, quality: quality, metadata, in: sandbox)
        }
        let (width, height) = (UInt32(size.width), UInt32(size.height))
        var buffer = image_codec_buffer()
        defer { image_codec_release(&buffer) }
        let isWritten = metadata.exif.withUnsafeBufferPointer { exif in
            metadata.iccProfile.withUnsafeBufferPointer { icc in
                let kept = image_codec_metadata(
                    exif: exif.baseAddress, exif_count: exif.count, icc: icc.baseAddress, icc_count: icc.count)
                switch format {
                case .jpeg:
                    var options = image_codec_jpeg_options(
                        components: 3, quality: Int32(quality), progressive: false, restart_interval: 0, metadata: kept)
                    return image_codec_encode_jpeg(pixels, width, height, &options, &buffer)
                case .webp:
                    var options = image_codec_webp_options(
                        components: hasAlpha ? 4 : 3, quality: Int32(quality), metadata: kept)
                    return image_codec_encode_webp(pixels, width, height, &options, &buffer)
                default:
                    var options = image_codec_png_options(
                        color_type: hasAlpha ? 6 : 2, bit_depth: 8, interlaced: false, palette: nil, palette_count: 0,
                        metadata: kept)
                    return image_codec_encode_png(pixels, width, height, &options, &buffer)
                }
            }
        }
        return isWritten ? Self.array(buffer) : nil
    }

    var bounds: image_codec_limits {
        image_codec_limits(
            max_dimension: UInt32(clamping: limits.maxDimension), max_pixels: UInt64(clamping: limits.maxPixels),
            max_whole_pixels: UInt64(clamping: limits.maxWholePixels),
            max_scans: UInt32(clamping: limits.maxScans), max_frames: UInt32(clamping: limits.maxFrames),
            max_memory: UInt64(clamping: limits.maxMemory), cpu_nanoseconds: UInt64(clamping: limits.cpuNanoseconds),
            cpu_nanoseconds_per_pixel: UInt64(clamping: limits.cpuNanosecondsPerPixel))
    }
}

/// Checks whether bytes are a whole image (SDImageCoder, without the pixels).
///
/// A value that any thread may use. No check holds a whole bitmap; checks share the memory for decoding and nothing else.
public struct ImageCoder: Sendable {
    /// What an image may cost.
    public var limits: Limits
    /// The memory for decoding.
    public let memory: DecodeMemory

    /// - Parameters:
    ///   - limits: what an image may cost.
    ///   - memory: what all decodes at one time may allocate, by default that of the process.
    public init(limits: Limits = Limits(), memory: DecodeMemory = .shared) {
        self.limits = limits
        self.memory = memory
    }

    /// Checks the complete bytes of a body.
    ///
    /// Bytes after the image's end are allowed. GIF and WebP are checked to their last byte at `structure`, and no further at `decode`.
    /// At `none` only an empty body is refused; the format is told where it is known, the size is not. Blocks at `decode` while other
    /// decodes use the ``memory`` that this one needs.
    /// - Throws: `tooLarge` where a decode takes more than ``Limits/maxMemory``. `badImageData` with the reason; `isIncompleteImage` where the bytes end inside the image. `unsupportedFormat` where
    ///   the format is known and cannot be checked at this level. `localFault` where memory ran out.
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

    /// As ``verify(_:level:)``; with `keep` what cannot be verified passes at ``ValidationLevel/header``, which is what its record says then.
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

    /// Looks at the first bytes of a body while it is still coming, so that a transfer can be given up early. Not for level `none`.
    /// - Returns: whether the header has been read and is fine; false asks for more bytes.
    /// - Throws: `badImageData` as soon as no further byte can help: text, no pixels, a size over the limits.
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

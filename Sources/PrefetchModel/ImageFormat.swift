/// An image format, detected from the first bytes of the data and never from a name or a Content-Type.
///
/// The raw value is used in manifests, JSON and file records; ``recordCode`` never changes.
public enum ImageFormat: String, Sendable, CaseIterable, Codable {
    /// JPEG (ITU-T T.81), decoded.
    case jpeg
    /// PNG and APNG, decoded.
    case png
    /// GIF87a and GIF89a, decoded.
    case gif
    /// WebP (RFC 9649), decoded where libwebp is installed.
    case webp
    /// AVIF, decoded where libavif is installed.
    case avif
    /// HEIF with HEVC, recognised only.
    case heic
    /// SVG, recognised only.
    case svg
    /// TIFF, recognised only.
    case tiff
    /// Windows bitmap, of which the size is known.
    case bmp
    /// Windows icon, recognised only.
    case ico
    /// JPEG XL, recognised only.
    case jxl
    /// JPEG 2000, recognised only.
    case jp2
    /// No known signature; only ``ValidationLevel/none`` accepts it.
    case unknown

    /// File extension without the dot; `bin` for ``unknown``.
    public var fileExtension: String {
        switch self {
        case .jpeg: "jpg"
        case .png, .gif, .webp, .avif, .heic, .svg, .tiff, .bmp, .ico, .jxl, .jp2: rawValue
        case .unknown: "bin"
        }
    }

    /// Media type registered with IANA; `application/octet-stream` for ``unknown``.
    public var mimeType: String {
        switch self {
        case .jpeg, .png, .gif, .webp, .avif, .heic, .tiff, .bmp, .jxl, .jp2: "image/" + rawValue
        case .svg: "image/svg+xml"
        case .ico: "image/vnd.microsoft.icon"
        case .unknown: "application/octet-stream"
        }
    }

    /// Identifies the format in a cached file's record; 0 is ``unknown``. Never reassigned.
    public var recordCode: UInt8 {
        switch self {
        case .unknown: 0
        case .jpeg: 1
        case .png: 2
        case .gif: 3
        case .webp: 4
        case .avif: 5
        case .heic: 6
        case .svg: 7
        case .tiff: 8
        case .bmp: 9
        case .ico: 10
        case .jxl: 11
        case .jp2: 12
        }
    }

    /// Looks up a ``recordCode``; nil if a newer version wrote it.
    public init?(recordCode: UInt8) {
        guard let format = Self.allCases.first(where: { $0.recordCode == recordCode }) else { return nil }
        self = format
    }

    /// The formats of these names; `jpg` and `tif` are accepted, too.
    /// - Throws: `invalidConfiguration` for an unknown name, with the one that may be meant.
    package static func formats(_ names: [String]) throws(WebImageError) -> Set<ImageFormat> {
        let known = allCases.filter { $0 != .unknown }.map(\.rawValue)
        var formats: Set<ImageFormat> = []
        for name in names {
            let plain = ["jpg": "jpeg", "tif": "tiff"][name.lowercased()] ?? name.lowercased()
            guard known.contains(plain), let format = ImageFormat(rawValue: plain) else {
                throw WebImageError(
                    .invalidConfiguration,
                    "there is no image type '\(name.prefix(40))'" + EditDistance.guess(plain, among: known)
                        + "; the types are \(known.joined(separator: ", "))")
            }
            formats.insert(format)
        }
        guard !formats.isEmpty else { throw WebImageError(.invalidConfiguration, "no image type is given") }
        return formats
    }
}

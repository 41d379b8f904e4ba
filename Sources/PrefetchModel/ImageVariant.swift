/// How images are changed before they are stored: size, format, metadata. A batch has at most one.
public struct ImageVariant: Sendable, Equatable {
    /// The size in pixels that images are made to fit; nil (default): their own.
    public var resize: PixelSize?
    /// How they fit it; default `inside`.
    public var fit = ImageFit.inside
    /// Whether images may be enlarged; default false.
    public var scalesUp = false
    /// Reduces images until their bitmap takes at most so many bytes, at 4 a pixel; nil (default): not.
    public var limitBytes: Int?
    /// `jpeg`, `png` or `webp`; nil (default): that of the original if it can be written, otherwise PNG with and JPEG without alpha.
    public var format: ImageFormat?
    /// Quality of JPEG and WebP, 1 to 100; default 90.
    public var quality = 90
    /// Whether EXIF data and colour profile are left out; default false: kept, with the orientation applied.
    public var stripsMetadata = false
    /// Whether animations are changed, too, so that their first frame is left (`transformAnimatedImage`); default false: they stay whole.
    public var transformsAnimations = false
    /// Whether the original is stored too, under its own key; default false.
    public var keepsOriginal = false

    /// Changes nothing.
    public init() {}

    /// Whether no image is changed.
    public var isIdentity: Bool { resize == nil && limitBytes == nil && format == nil && !stripsMetadata }

    /// In the keys of what changes animations, too.
    package static let stillKey = "still"

    /// Names the change in cache keys, such as `256x256-cover-jpeg-q95`.
    public var transformerKey: String {
        var parts: [String] = []
        if let resize { parts += ["\(resize.width)x\(resize.height)", fit.rawValue] }
        if scalesUp { parts.append("up") }
        if let limitBytes { parts.append("max\(limitBytes)") }
        if let format { parts.append(format.rawValue) }
        if quality != 90 { parts.append("q\(quality)") }
        if stripsMetadata { parts.append("strip") }
        if transformsAnimations { parts.append(Self.stillKey) }
        return parts.joined(separator: "-")
    }

    /// The bytes that SDWebImage's option ScaleDownLargeImages leaves: 60 MiB.
    public static let scaleDownLimitBytes = 60 << 20
}

extension ImageVariant: Codable {
    private enum CodingKeys: String, CodingKey {
        case width, height, fit, up, limitBytes, format, quality, strip, still, keepOriginal
    }

    /// Whatever a record says, within the ranges of the options.
    public init(from decoder: any Decoder) throws {
        let record = try decoder.container(keyedBy: CodingKeys.self)
        func side(_ key: CodingKeys) throws -> Int? {
            try record.decodeIfPresent(Int.self, forKey: key).map { min(max(1, $0), 32_768) }
        }
        if let width = try side(.width), let height = try side(.height) {
            resize = PixelSize(width: width, height: height)
        }
        fit = try record.decodeIfPresent(ImageFit.self, forKey: .fit) ?? fit
        scalesUp = try record.decodeIfPresent(Bool.self, forKey: .up) ?? scalesUp
        limitBytes = try record.decodeIfPresent(Int.self, forKey: .limitBytes).map { max(4, $0) }
        format = try record.decodeIfPresent(ImageFormat.self, forKey: .format)
        quality = min(max(1, try record.decodeIfPresent(Int.self, forKey: .quality) ?? quality), 100)
        stripsMetadata = try record.decodeIfPresent(Bool.self, forKey: .strip) ?? stripsMetadata
        transformsAnimations = try record.decodeIfPresent(Bool.self, forKey: .still) ?? transformsAnimations
        keepsOriginal = try record.decodeIfPresent(Bool.self, forKey: .keepOriginal) ?? keepsOriginal
    }

    /// Only what is not the default.
    public func encode(to encoder: any Encoder) throws {
        var record = encoder.container(keyedBy: CodingKeys.self)
        try record.encodeIfPresent(resize?.width, forKey: .width)
        try record.encodeIfPresent(resize?.height, forKey: .height)
        if fit != .inside { try record.encode(fit, forKey: .fit) }
        if scalesUp { try record.encode(true, forKey: .up) }
        try record.encodeIfPresent(limitBytes, forKey: .limitBytes)
        try record.encodeIfPresent(format, forKey: .format)
        if quality != 90 { try record.encode(quality, forKey: .quality) }
        if stripsMetadata { try record.encode(true, forKey: .strip) }
        if transformsAnimations { try record.encode(true, forKey: .still) }
        if keepsOriginal { try record.encode(true, forKey: .keepOriginal) }
    }
}

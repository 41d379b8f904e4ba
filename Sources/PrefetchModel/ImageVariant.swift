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

extension ImageVariant: SettingRecord {
    package static let settings: [Setting<ImageVariant>] = [
        Setting(
            "--resize", \.resize, .wxh(1...32_768), usual: "none",
            "Resize images to this size: 256x192, or 256 for 256x256. Smaller ones stay.",
            foreign: ["--image-size"]),
        Setting(
            "--fit", \.fit, .choice("fit"),
            "How an image fits the size: inside (whole), shorter (whole, by its shorter side), cover (cut to it) or pad (whole, with a background)."
        ),
        Setting(
            "--upscale", \.scalesUp, .flag, "Enlarge images that are smaller than the size, too."),
        Setting(
            "--image-format", \.format, .stored, usual: "keep",
            "Store images as jpeg, png, webp or keep: in their own format, or PNG or JPEG.",
            foreign: ["--encode-format"]),
        Setting(
            "--quality", \.quality, .count(1...100), "Quality of JPEG and WebP images that are written, 1 to 100.",
            foreign: ["--encode-quality"]),
        Setting("--strip", \.stripsMetadata, .flag, "Drop EXIF data and color profiles of images."),
        Setting("--keep-original", \.keepsOriginal, .flag, "Store the original images, too."),
        Setting("--limit-bytes", \.limitBytes, .count(4...Int.max), is: .library, ""),
        Setting("--still", \.transformsAnimations, .flag, is: .library, ""),
    ].section("Resizing")
}

extension SettingKind where Value == PixelSize {
    /// `256x256`; one number is both.
    static func wxh(_ sides: ClosedRange<Int>, rule: String? = nil) -> SettingKind {
        SettingKind("wxh", rule: rule) { word in
            let numbers = word.lowercased().split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
            guard (1...2).contains(numbers.count), let width = numbers[0], let height = numbers[numbers.count - 1],
                sides ~= width, sides ~= height
            else { return nil }
            return PixelSize(width: width, height: height)
        } _: {
            "\($0.width)x\($0.height)"
        }
    }
}

extension SettingKind where Value == ImageFormat? {
    /// The formats that images are written in; nil: their own.
    fileprivate static var stored: SettingKind {
        let formats: [ImageFormat] = [.jpeg, .png, .webp]
        return SettingKind(
            "format", values: formats.map(\.rawValue) + ["keep"], rule: "is jpeg, png, webp or keep",
            { word in word == "keep" ? .some(nil) : formats.first { $0.rawValue == word }.map { .some($0) } },
            { $0?.rawValue ?? "keep" })
    }
}

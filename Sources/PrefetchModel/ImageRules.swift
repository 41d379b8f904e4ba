/// Which images a batch takes, by what their first bytes say: size, proportions, format. Sizes are those of the upright image.
///
/// An image that breaks a rule ends as ``PrefetchOutcome/filtered``; its transfer stops as soon as its header is there.
public struct ImageRules: Sendable, Hashable {
    /// Least width and height in pixels; 0: any. nil (default): any of both.
    public var minSize: PixelSize?
    /// Greatest product of width and height, from 1; nil (default): any.
    public var maxPixels: Int?
    /// Greatest quotient of the longer and the shorter side, from 1; nil (default): any.
    public var maxAspectRatio: Double?
    /// The formats that are taken; nil (default): all.
    public var types: Set<ImageFormat>?

    /// Takes every image.
    public init() {}

    /// Whether every image is taken.
    public var isEmpty: Bool { self == ImageRules() }

    /// Which rule an image breaks, with its figure; nil if none.
    package func objection(to image: ImageHeader) -> (message: String, reason: FailureReason)? {
        let (format, size) = (image.format, image.size)
        if let types, !types.contains(format) {
            let names = types.map(\.rawValue).sorted().joined(separator: ", ")
            return ("\(format.rawValue); the accepted types are \(names)", .imageType)
        }
        let least = minSize ?? PixelSize(width: 0, height: 0)
        guard least.width > 0 || least.height > 0 || maxPixels != nil || maxAspectRatio != nil else { return nil }
        guard size.width > 0, size.height > 0 else {
            return ("\(format.rawValue) of unknown size; the batch has rules about it", .unknownSize)
        }
        func refused(_ rule: String) -> (message: String, reason: FailureReason) {
            ("\(size.width) x \(size.height) pixels; \(rule)", .imageSize)
        }
        if size.width < least.width { return refused("the minimum width is \(least.width)") }
        if size.height < least.height { return refused("the minimum height is \(least.height)") }
        let pixels = size.width.multipliedReportingOverflow(by: size.height)
        let count = pixels.overflow ? Int.max : pixels.partialValue
        if let maxPixels, count > maxPixels { return refused("the maximum is \(maxPixels) pixels") }
        let ratio = Double(max(size.width, size.height)) / Double(min(size.width, size.height))
        if let maxAspectRatio, ratio > maxAspectRatio {
            return refused("the maximum aspect ratio is \(Self.text(maxAspectRatio))")
        }
        return nil
    }

    /// The rules as options of a command line, such as `--min-size 200x200`; `none` if every image is taken.
    package var text: String {
        let words = Self.settings.compactMap { row in row.text(self).map { "\(row.about.flag) \($0)" } }
        return words.isEmpty ? "none" : words.joined(separator: " ")
    }

    private static func text(_ ratio: Double) -> String {
        ratio == ratio.rounded() && ratio < 1e15 ? String(Int(ratio)) : String(ratio)
    }

    /// Range of the sides and of the aspect ratio.
    package static let sides = 1...1_000_000
    /// Range of the pixel counts.
    package static let pixels = 1...1_000_000_000_000
}

extension ImageRules: SettingRecord {
    package static let settings: [Setting<ImageRules>] = [
        Setting(
            "--min-size", \.minSize,
            .wxh(0...sides.upperBound, rule: "is WxH, or a number for both, from 0 (no limit) to \(sides.upperBound)"),
            "Least pixels a side: 256x192, 256 for both, 0 for any.",
            foreign: ["--min-image-size", "--min-width", "--min-height"]),
        Setting(
            "--max-pixels", \.maxPixels, .pixels(pixels), usual: "the most that workers take, 500M",
            "Refuse images of more pixels, width times height: 25M.", foreign: ["--max-image-area"]),
        Setting(
            "--max-aspect-ratio", \.maxAspectRatio, .number(1...Double(sides.upperBound), "ratio"), usual: "no limit",
            "Refuse images whose longer side exceeds this many times the shorter."),
        Setting(
            "--types", \.types, .list("type,...", ImageFormat.formats) { $0.map(\.rawValue).sorted() },
            usual: "all", "Take these formats only: jpeg,png,webp."),
    ].section("Selection")

    /// Why no image can satisfy the rules; nil if one can.
    package var contradiction: String? {
        guard let most = maxPixels else { return nil }
        let least = max(1, minSize?.width ?? 1) * max(1, minSize?.height ?? 1)
        return least > most ? "no image has at least \(least) and at most \(most) pixels" : nil
    }
}

/// Which images a batch takes, by what their first bytes say: size, proportions, format. Sizes are those of the upright image.
///
/// An image that breaks a rule ends as ``PrefetchOutcome/filtered``; its transfer stops as soon as its header is there.
public struct ImageRules: Sendable, Hashable {
    /// Least width in pixels, from 1; nil (default): any.
    public var minWidth: Int?
    /// Least height in pixels, from 1; nil (default): any.
    public var minHeight: Int?
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

    /// The rules of a line over those of its batch: each replaces the one of the same name.
    package func overridden(by other: ImageRules) -> ImageRules {
        var rules = self
        rules.minWidth = other.minWidth ?? minWidth
        rules.minHeight = other.minHeight ?? minHeight
        rules.maxPixels = other.maxPixels ?? maxPixels
        rules.maxAspectRatio = other.maxAspectRatio ?? maxAspectRatio
        rules.types = other.types ?? types
        return rules
    }

    /// Which rule an image breaks, with its figure; nil if none.
    package func objection(to image: ImageHeader) -> (message: String, reason: FailureReason)? {
        let (format, size) = (image.format, image.size)
        if let types, !types.contains(format) {
            let names = types.map(\.rawValue).sorted().joined(separator: ", ")
            return ("\(format.rawValue); the accepted types are \(names)", .imageType)
        }
        guard minWidth ?? minHeight ?? maxPixels != nil || maxAspectRatio != nil else { return nil }
        guard size.width > 0, size.height > 0 else {
            return ("\(format.rawValue) of unknown size; the batch has rules about it", .unknownSize)
        }
        func refused(_ rule: String) -> (message: String, reason: FailureReason) {
            ("\(size.width) x \(size.height) pixels; \(rule)", .imageSize)
        }
        if let minWidth, size.width < minWidth { return refused("the minimum width is \(minWidth)") }
        if let minHeight, size.height < minHeight { return refused("the minimum height is \(minHeight)") }
        let pixels = size.width.multipliedReportingOverflow(by: size.height)
        let count = pixels.overflow ? Int.max : pixels.partialValue
        if let maxPixels, count > maxPixels { return refused("the maximum is \(maxPixels) pixels") }
        let ratio = Double(max(size.width, size.height)) / Double(min(size.width, size.height))
        if let maxAspectRatio, ratio > maxAspectRatio {
            return refused("the maximum aspect ratio is \(Self.text(maxAspectRatio))")
        }
        return nil
    }

    /// What is set, as text, by its name in JSON.
    package var members: [(name: String, value: String)] {
        let values: [(CodingKeys, String?)] = [
            (.minWidth, minWidth.map(String.init)), (.minHeight, minHeight.map(String.init)),
            (.maxPixels, maxPixels.map(String.init)),
            (.maxAspectRatio, maxAspectRatio.map(Self.text)),
            (.types, types.map { $0.map(\.rawValue).sorted().joined(separator: ",") }),
        ]
        return values.compactMap { key, value in value.map { (key.rawValue, $0) } }
    }

    /// The rules as options of a command line, such as `--min-width 200`; `none` if every image is taken.
    package var text: String {
        let words = members.map { name, value in "--\(String(name.map { $0 == "_" ? "-" : $0 })) \(value)" }
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

extension ImageRules: Codable {
    /// Names in JSON.
    package enum CodingKeys: String, CodingKey, CaseIterable, Sendable {
        case minWidth = "min_width"
        case minHeight = "min_height"
        case maxPixels = "max_pixels"
        case maxAspectRatio = "max_aspect_ratio"
        case types
    }

    /// Whatever a record says, within the ranges of the options.
    public init(from decoder: any Decoder) throws {
        let record = try decoder.container(keyedBy: CodingKeys.self)
        func number(_ key: CodingKeys, _ range: ClosedRange<Int>) throws -> Int? {
            try record.decodeIfPresent(Int.self, forKey: key).map {
                min(max(range.lowerBound, $0), range.upperBound)
            }
        }
        minWidth = try number(.minWidth, Self.sides)
        minHeight = try number(.minHeight, Self.sides)
        maxPixels = try number(.maxPixels, Self.pixels)
        maxAspectRatio = try record.decodeIfPresent(Double.self, forKey: .maxAspectRatio).map {
            $0.isFinite ? min(max(1, $0), Double(Self.sides.upperBound)) : 1
        }
        types = try record.decodeIfPresent([ImageFormat].self, forKey: .types).map { Set($0) }
    }

    /// Only what is set, the types in order.
    public func encode(to encoder: any Encoder) throws {
        var record = encoder.container(keyedBy: CodingKeys.self)
        try record.encodeIfPresent(minWidth, forKey: .minWidth)
        try record.encodeIfPresent(minHeight, forKey: .minHeight)
        try record.encodeIfPresent(maxPixels, forKey: .maxPixels)
        try record.encodeIfPresent(maxAspectRatio, forKey: .maxAspectRatio)
        try record.encodeIfPresent(types.map { $0.map(\.rawValue).sorted() }, forKey: .types)
    }
}

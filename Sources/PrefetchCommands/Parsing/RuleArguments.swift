internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// Which images are taken, by their first bytes.
struct RuleArguments: ParsableArguments {
    @Option(help: .count("Refuse images narrower than this, in pixels. (default: no limit)"))
    var minWidth: Int?

    @Option(help: .count("Refuse images shorter than this, in pixels. (default: no limit)"))
    var minHeight: Int?

    @Option(
        help: .count(
            "Refuse images of more pixels, width times height: 25M. (default: the most that workers take, 500M)"))
    var maxPixels: PixelCount?

    @Option(
        help: .value(
            "ratio",
            "Refuse images whose longer side exceeds this many times the shorter. (default: no limit)"
        ))
    var maxAspectRatio: Double?

    @Option(help: .value("type,...", "Refuse images in other formats: jpeg,png,webp. (default: all formats)"))
    var types: String?

    /// As the batch keeps them.
    var rules: ImageRules {
        var rules = ImageRules()
        rules.minWidth = minWidth
        rules.minHeight = minHeight
        rules.maxPixels = maxPixels?.count
        rules.maxAspectRatio = maxAspectRatio
        rules.types = types.flatMap { try? RuleMembers.types(Self.names(in: $0)) }
        return rules
    }

    func validate() throws {
        for (option, value) in [("--min-width", minWidth), ("--min-height", minHeight)] {
            guard let value, !ImageRules.sides.contains(value) else { continue }
            throw ValidationError(
                "\(option) is 1 to \(Wording.count(ImageRules.sides.upperBound)) pixels, not \(value)")
        }
        try maxPixels?.check("--max-pixels")
        if let maxAspectRatio, !(1...Double(ImageRules.sides.upperBound)).contains(maxAspectRatio) {
            throw ValidationError("--max-aspect-ratio is a number from 1: 1 takes only squares, 3 also 300 x 100")
        }
        if let types {
            do throws(WebImageError) { _ = try RuleMembers.types(Self.names(in: types)) } catch {
                throw ValidationError("--types: \(error.message)")
            }
        }
        if let contradiction = RuleMembers.contradiction(rules) { throw ValidationError(contradiction) }
    }

    private static func names(in text: String) -> [String] {
        text.split(separator: ",").map { $0.filter { $0 != " " } }
    }
}

/// A number of pixels: `1000000`, `1M`, `25MP`, `300k`, all in powers of 1,000.
struct PixelCount: ExpressibleByArgument {
    var count: Int

    init(count: Int) { self.count = count }

    init?(argument: String) {
        var text = argument.lowercased()[...]
        var factor = 1.0
        for (unit, value) in [("mp", 1e6), ("m", 1e6), ("k", 1e3), ("g", 1e9)] where text.hasSuffix(unit) {
            text = text.dropLast(unit.count)
            factor = value
            break
        }
        guard let number = Double(text), number.isFinite, number >= 0, number * factor < 1e15 else { return nil }
        count = Int(number * factor)
    }

    var defaultValueDescription: String {
        count % 1_000_000 == 0 ? "\(count / 1_000_000)M" : String(count)
    }

    /// - Throws: unless it is in the range of the rules about pixels.
    func check(_ option: String) throws {
        guard !ImageRules.pixels.contains(count) else { return }
        throw ValidationError("\(option) is 1 to \(Wording.count(ImageRules.pixels.upperBound)) pixels, not \(count)")
    }
}

internal import WebImage

/// Reads ``ImageRules`` from words: the member `rules` of a JSON line, and the types of an option.
package enum RuleMembers {
    /// * `members`: by the names of the options, with `_`: `{"min_width":200,"types":["jpeg","png"]}`.
    /// - Throws: `invalidConfiguration` with the member and its range.
    static func rules(_ members: [String: JSONValue]) throws(WebImageError) -> ImageRules {
        var rules = ImageRules()
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            guard let key = ImageRules.CodingKeys(rawValue: name) else {
                let known = ImageRules.CodingKeys.allCases.map(\.rawValue)
                throw WebImageError(
                    .invalidConfiguration, "there is no rule '\(name.prefix(40))'" + guess(name, among: known))
            }
            switch key {
            case .minWidth: rules.minWidth = try number(value, name, ImageRules.sides)
            case .minHeight: rules.minHeight = try number(value, name, ImageRules.sides)
            case .maxPixels: rules.maxPixels = try number(value, name, ImageRules.pixels)
            case .maxAspectRatio: rules.maxAspectRatio = try ratio(value, name)
            case .types:
                guard case .array(let items) = value else {
                    throw WebImageError(.invalidConfiguration, "the rule types is a list of names, such as [\"jpeg\"]")
                }
                rules.types = try types(items.map(\.text))
            }
        }
        if let contradiction = contradiction(rules) { throw WebImageError(.invalidConfiguration, contradiction) }
        return rules
    }

    /// The formats of these names; `jpg` and `tif` are accepted, too.
    /// - Throws: `invalidConfiguration` for an unknown name, with the one that may be meant.
    package static func types(_ names: [String]) throws(WebImageError) -> Set<ImageFormat> {
        let known = ImageFormat.allCases.filter { $0 != .unknown }.map(\.rawValue)
        var formats: Set<ImageFormat> = []
        for name in names {
            let plain = ["jpg": "jpeg", "tif": "tiff"][name.lowercased()] ?? name.lowercased()
            guard known.contains(plain), let format = ImageFormat(rawValue: plain) else {
                throw WebImageError(
                    .invalidConfiguration,
                    "there is no image type '\(name.prefix(40))'" + guess(plain, among: known)
                        + "; the types are \(known.joined(separator: ", "))")
            }
            formats.insert(format)
        }
        guard !formats.isEmpty else { throw WebImageError(.invalidConfiguration, "no image type is given") }
        return formats
    }

    /// Why no image can satisfy the rules; nil if one can.
    package static func contradiction(_ rules: ImageRules) -> String? {
        guard let most = rules.maxPixels else { return nil }
        let least = (rules.minWidth ?? 1) * (rules.minHeight ?? 1)
        return least > most ? "no image has at least \(least) and at most \(most) pixels" : nil
    }

    private static func guess(_ name: String, among known: [String]) -> String {
        let nearest = known.map { ($0, EditDistance.between($0, name.lowercased())) }.min { $0.1 < $1.1 }
        guard let (word, distance) = nearest, distance <= max(1, min(3, word.count / 3)) else { return "" }
        return "; did you mean '\(word)'?"
    }

    private static func number(
        _ value: JSONValue, _ name: String, _ range: ClosedRange<Int>
    ) throws(WebImageError) -> Int {
        if case .int(let number) = value, let number = Int(exactly: number), range.contains(number) { return number }
        throw WebImageError(
            .invalidConfiguration, "the rule \(name) is a number from \(range.lowerBound) to \(range.upperBound)")
    }

    private static func ratio(_ value: JSONValue, _ name: String) throws(WebImageError) -> Double {
        switch value {
        case .int(let number) where (1...Int64(ImageRules.sides.upperBound)).contains(number): return Double(number)
        case .double(let number) where (1...Double(ImageRules.sides.upperBound)).contains(number): return number
        default:
            throw WebImageError(
                .invalidConfiguration, "the rule \(name) is a number from 1 to \(ImageRules.sides.upperBound)")
        }
    }
}

internal import WebImage

/// Reads ``ImageRules`` from the member `rules` of a JSON line.
enum RuleMembers {
    /// * `members`: by the names of the options, with `_`: `{"min_size":200,"types":["jpeg","png"]}`.
    /// - Throws: `invalidConfiguration` with the member and its range.
    static func rules(_ members: [String: JSONValue]) throws(WebImageError) -> ImageRules {
        var rules = ImageRules()
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            guard let row = ImageRules.settings.first(where: { $0.name == name }) else {
                let known = ImageRules.settings.map(\.name)
                throw WebImageError(
                    .invalidConfiguration,
                    "there is no rule '\(name.prefix(40))'" + EditDistance.guess(name, among: known))
            }
            let words: [String]
            switch value {
            case .array(let items) where row.name == "types": words = [items.map(\.column.text).joined(separator: ",")]
            case .string(let text) where row.name == "min_size": words = [text]
            case .int, .double: words = [value.column.text]
            default:
                throw WebImageError(
                    .invalidConfiguration,
                    "the rule \(name) is "
                        + (row.name == "types" ? "a list of names, such as [\"jpeg\"]" : "a number")
                        + (row.name == "min_size" ? ", or a text such as \"200x0\"" : ""))
            }
            try row.read(words, into: &rules, subject: "the rule \(name)")
        }
        if let contradiction = rules.contradiction { throw WebImageError(.invalidConfiguration, contradiction) }
        return rules
    }
}

/// Markup by interpolation: strings are escaped, and only another ``HTML`` is inserted unchanged, so external text cannot become markup.
struct HTML: ExpressibleByStringInterpolation, Sendable {
    private(set) var text: String

    init(stringLiteral value: String) { text = value }

    init(stringInterpolation: Interpolation) { text = stringInterpolation.text }

    struct Interpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }

        mutating func appendLiteral(_ literal: String) { text += literal }

        mutating func appendInterpolation(_ value: String) { text += HTML.escaped(value) }

        mutating func appendInterpolation(_ value: Int) { text += String(value) }

        mutating func appendInterpolation(_ value: HTML) { text += value.text }

        mutating func appendInterpolation(_ values: [HTML]) {
            for value in values { text += value.text }
        }
    }

    /// Escapes text for an element or a quoted attribute. Characters that move or reorder other text appear as their number.
    private static func escaped(_ text: String) -> String {
        TerminalText.escaped(text).reduce(into: "") { out, character in
            switch character {
            case "&": out += "&amp;"
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "\"": out += "&quot;"
            case "'": out += "&#39;"
            default: out.append(character)
            }
        }
    }

    /// A URL without its password; a long one is shortened to its beginning and end.
    static func url(_ url: String, most: Int = 240) -> HTML {
        let text = TerminalText.url(url)
        let shown = text.count <= most ? text : "\(text.prefix(most * 2 / 3)) … \(text.suffix(most / 3))"
        return "<bdi dir=\"ltr\">\(shown)</bdi>"
    }
}

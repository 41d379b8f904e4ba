/// Markup whose holes are filled with escaped text: what comes from outside cannot become markup, because only another ``HTML`` goes in as
/// it is.
struct HTML: ExpressibleByStringInterpolation, Sendable {
    /// The markup.
    private(set) var text: String

    init(stringLiteral value: String) { text = value }

    init(stringInterpolation: Interpolation) { text = stringInterpolation.text }

    /// What is put together.
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

    /// Text for an element or a quoted attribute. What would move or reorder other text is shown as its number.
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

    /// A URL of any length, without its password: the beginning and the end of it.
    static func url(_ url: String, most: Int = 240) -> HTML {
        let text = TerminalText.url(url)
        let shown = text.count <= most ? text : "\(text.prefix(most * 2 / 3)) … \(text.suffix(most / 3))"
        return "<bdi dir=\"ltr\">\(shown)</bdi>"
    }
}

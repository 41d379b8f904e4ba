/// How a piece of text looks. The meaning is never in the colour alone.
struct Ink: Equatable, Sendable {
    /// The terminal's own eight colours, so that they fit its background.
    enum Colour: Int, Sendable {
        case red = 31
        case green = 32
        case yellow = 33
        case blue = 34
        case cyan = 36
    }

    /// Every number that ``painted(_:isColoured:)`` may write.
    static let codes: Set<String> = ["0", "1", "2", "7", "31", "32", "33", "34", "36"]

    var colour: Colour?
    var isBold = false
    var isDim = false
    var isReverse = false

    static let plain = Ink()
    static let bold = Ink(isBold: true)
    static let dim = Ink(isDim: true)
    static let good = Ink(colour: .green)
    static let warning = Ink(colour: .yellow)
    static let bad = Ink(colour: .red, isBold: true)
    static let accent = Ink(colour: .cyan)
    static let title = Ink(colour: .cyan, isBold: true)

    /// The same, marked as chosen.
    var selected: Ink {
        var ink = self
        ink.isReverse = true
        return ink
    }

    /// The text in this style by SGR (ECMA-48); without colour only bold and reverse.
    func painted(_ text: String, isColoured: Bool) -> String {
        var codes: [String] = []
        if isBold { codes.append("1") }
        if isDim && isColoured { codes.append("2") }
        if isReverse { codes.append("7") }
        if let colour, isColoured { codes.append(String(colour.rawValue)) }
        return codes.isEmpty || text.isEmpty ? text : "\u{1B}[\(codes.joined(separator: ";"))m\(text)\u{1B}[0m"
    }
}

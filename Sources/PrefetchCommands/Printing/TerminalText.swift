/// Text from the outside made safe to print: nothing of a URL, a header or a file name can move the cursor or reorder a line.
package enum TerminalText {
    /// Control characters of both sets, the bidirectional marks, overrides and isolates, line and paragraph separators.
    static func isUnsafe(_ scalar: UnicodeScalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
        default: false
        }
    }

    /// The text with every unsafe character as `\xNN` or `\u{NNNN}`, and the secrets of URLs in it masked.
    package static func escaped(_ text: String) -> String { plain(ShownURL.text(text)) }

    private static func plain(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isUnsafe) else { return text }
        return text.unicodeScalars.reduce(into: "") { out, scalar in
            guard isUnsafe(scalar) else {
                out.unicodeScalars.append(scalar)
                return
            }
            let hex = String(scalar.value, radix: 16)
            out += scalar.value < 0x100 ? "\\x" + (hex.count == 1 ? "0" : "") + hex : "\\u{\(hex)}"
        }
    }

    /// A line that is about to be printed: what is left of control characters in it, except tabs, line ends and the styles of ``Ink``, is
    /// escaped. The last door: whatever a caller forgot cannot move the cursor or clear the screen. Other characters stay, since a line may
    /// be a URL that somebody reads on.
    static func line(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 < 0x20 && $0 != 0x0A && $0 != 0x09 || $0 == 0x7F }) else { return text }
        var out = ""
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            if scalar == "\u{1B}", let end = styleEnd(rest) {
                out.unicodeScalars.append(scalar)
                out.unicodeScalars.append(contentsOf: rest[..<end])
                rest = rest[end...]
            } else if scalar.value < 0x20 && scalar != "\n" && scalar != "\t" || scalar.value == 0x7F {
                out += escaped(String(scalar))
            } else {
                out.unicodeScalars.append(scalar)
            }
        }
        return out
    }

    /// A ``line(_:)`` for a terminal: what changes the order or the place of other characters, and the second set of control characters, is
    /// escaped too.
    static func shown(_ line: String) -> String {
        guard line.utf8.contains(where: { $0 >= 0x80 }) else { return line }
        return line.unicodeScalars.reduce(into: "") { out, scalar in
            guard scalar.value >= 0x80, isUnsafe(scalar) else {
                out.unicodeScalars.append(scalar)
                return
            }
            out += plain(String(scalar))
        }
    }

    /// The end of a style behind its ESC: `[`, numbers of ``Ink`` with semicolons between, `m`; nil where there is none.
    private static func styleEnd(_ text: Substring.UnicodeScalarView) -> Substring.UnicodeScalarView.Index? {
        guard text.first == "[", let end = text.prefix(12).firstIndex(of: "m") else { return nil }
        let codes = String(text[text.index(after: text.startIndex)..<end]).split(separator: ";")
        guard !codes.isEmpty, codes.allSatisfy({ Ink.codes.contains(String($0)) }) else { return nil }
        return text.index(after: end)
    }

    /// A URL for a person: escaped, and its secrets masked.
    static func url(_ url: String) -> String { plain(ShownURL.url(url)) }
}

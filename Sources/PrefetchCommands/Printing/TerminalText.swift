/// Text from the outside made safe to print: nothing of a URL, a header or a file name can move the cursor or reorder a line.
enum TerminalText {
    /// Control characters of both sets, the bidirectional overrides and isolates, line and paragraph separators.
    static func isUnsafe(_ scalar: UnicodeScalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
        default: false
        }
    }

    /// The text with every unsafe character as `\xNN` or `\u{NNNN}`, and the secrets of URLs in it masked.
    static func escaped(_ text: String) -> String { plain(ShownURL.text(text)) }

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

    /// A URL for a person: escaped, and its secrets masked.
    static func url(_ url: String) -> String { plain(ShownURL.url(url)) }
}

/// Columns that a terminal gives to text: by Unicode's East Asian Width (UAX #11) and general categories, and never less than what
/// terminals in use give, so that a line that fits by this fits everywhere.
enum DisplayWidth {
    /// Wide and fullwidth (W, F) of EastAsianWidth.txt, in blocks; emoji come from their own property.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2329...0x232A, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
        0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18DFF,
        0x1AFF0...0x1B2FF, 0x1F200...0x1F2FF, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1FAFF,
        0x20000...0x3FFFD,
    ]

    /// 0 for a combining character, 2 for a wide one, otherwise 1.
    static func columns(_ scalar: UnicodeScalar) -> Int {
        if scalar.isASCII { return 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: return 0
        default: break
        }
        if scalar.properties.isEmojiPresentation { return 2 }
        return wide.contains { $0.contains(scalar.value) } ? 2 : 1
    }

    /// The sum, with a column more where a character is asked to be an emoji (U+FE0F).
    static func columns(_ text: String) -> Int {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.utf8.count }
        return text.unicodeScalars.reduce(0) { $0 + columns($1) + ($1.value == 0xFE0F ? 1 : 0) }
    }

    /// What stands for text that was cut off.
    static func mark(_ isUnicode: Bool) -> String { isUnicode ? "…" : "..." }

    /// Both ends of a text in at most so many columns, with `mark` for the middle: both ends tell a host from others.
    static func cutMiddle(_ text: String, to limit: Int, mark: String) -> String {
        let room = limit - columns(mark)
        guard columns(text) > limit, room >= 8 else { return cut(text, to: limit, mark: mark) }
        let head = cut(text, to: room / 2 + columns(mark), mark: mark)
        var (tail, left) = ([UnicodeScalar](), limit - columns(head))
        for scalar in text.unicodeScalars.reversed() {
            left -= columns(scalar) + (scalar.value == 0xFE0F ? 1 : 0)
            if left < 0 { break }
            tail.append(scalar)
        }
        // A combining character at the cut would change `mark`.
        while let last = tail.last, columns(last) == 0 { tail.removeLast() }
        return tail.reversed().reduce(into: head) { $0.unicodeScalars.append($1) }
    }

    /// The beginning of a text in at most so many columns; where something is cut off, `mark` stands for it.
    static func cut(_ text: String, to limit: Int, mark: String) -> String {
        guard columns(text) > limit else { return text }
        var left = limit - columns(mark)
        guard left > 0 else { return String(repeating: ".", count: max(0, limit)) }
        var out = ""
        for scalar in text.unicodeScalars {
            left -= columns(scalar) + (scalar.value == 0xFE0F ? 1 : 0)
            if left < 0 { break }
            out.unicodeScalars.append(scalar)
        }
        return out + mark
    }

    /// The same for a sentence, which is cut between two words where that leaves most of it.
    static func cutWords(_ text: String, to limit: Int, mark: String) -> String {
        let all = cut(text, to: limit, mark: mark)
        guard all.utf8.count > mark.utf8.count, columns(text) > limit else { return all }
        let kept = all.dropLast(mark.count)
        // Between two words it is cut already.
        if text.dropFirst(kept.count).first == " " { return all }
        guard let blank = kept.lastIndex(of: " "), columns(String(kept[..<blank])) * 2 >= limit else { return all }
        return kept[...blank] + mark
    }
}

extension TerminalText {
    /// Escaped for a screen whose columns are counted: also what has no glyph, or only a terminal's guess of one, and without Unicode
    /// everything that is not ASCII.
    static func cells(_ text: String, isUnicode: Bool) -> String {
        text.unicodeScalars.reduce(into: "") { out, scalar in
            if scalar.isASCII && !isUnsafe(scalar) {
                out.unicodeScalars.append(scalar)
            } else if isUnicode && !isUnsafe(scalar) && hasGlyph(scalar) {
                out.unicodeScalars.append(scalar)
            } else {
                let hex = String(scalar.value, radix: 16)
                out += scalar.value < 0x100 ? "\\x" + (hex.count == 1 ? "0" : "") + hex : "\\u{\(hex)}"
            }
        }
    }

    private static func hasGlyph(_ scalar: UnicodeScalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
        default: true
        }
    }
}

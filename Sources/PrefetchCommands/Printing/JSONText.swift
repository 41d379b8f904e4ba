/// JSON with its members in the order they are written: what scripts of others read, and people too.
package enum JSONText: Sendable {
    case null
    case bool(Bool)
    case int(Int)
    /// Printed with so many decimals at most.
    case number(Double, digits: Int = 3)
    case string(String)
    /// JSON as others have written it.
    case raw(String)
    case array([JSONText])
    case object([(String, JSONText)])

    /// One line, without blanks.
    package var text: String {
        var out = ""
        write(to: &out)
        return out
    }

    private func write(to out: inout String) {
        switch self {
        case .null: out += "null"
        case .bool(let value): out += value ? "true" : "false"
        case .int(let value): out += String(value)
        case .number(let value, let count):
            let scale = (0..<count).reduce(1) { scale, _ in scale * 10 }
            let parts = Int(clamped: (value * Double(scale)).rounded())
            out += parts < 0 ? "-" : ""
            out += "\(abs(parts) / scale)"
            let rest = abs(parts) % scale
            if rest > 0 {
                var digits = String(repeating: "0", count: count - String(rest).count) + String(rest)
                while digits.last == "0" { digits.removeLast() }
                out += "." + digits
            }
        case .string(let value): Self.write(value, to: &out)
        case .raw(let value): Self.copy(value, to: &out)
        case .array(let values):
            out += "["
            for (index, value) in values.enumerated() {
                if index > 0 { out += "," }
                value.write(to: &out)
            }
            out += "]"
        case .object(let members):
            out += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { out += "," }
                Self.write(member.0, to: &out)
                out += ":"
                member.1.write(to: &out)
            }
            out += "}"
        }
    }

    /// Blanks between values are single; characters that a terminal acts on are escaped.
    private static func copy(_ json: String, to out: inout String) {
        var isWithinString = false, isEscaped = false
        for scalar in json.unicodeScalars {
            if isWithinString {
                if TerminalText.isUnsafe(scalar) { escape(scalar, to: &out) } else { out.unicodeScalars.append(scalar) }
                if scalar == "\"", !isEscaped { isWithinString = false }
                isEscaped = scalar == "\\" && !isEscaped
            } else if !["\t", "\n", "\r"].contains(scalar) {
                isWithinString = scalar == "\""
                out.unicodeScalars.append(scalar)
            }
        }
    }

    private static func escape(_ scalar: UnicodeScalar, to out: inout String) {
        for unit in String(scalar).utf16 {
            let hex = String(unit, radix: 16)
            out += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
        }
    }

    /// An object over several lines.
    package static func lines(_ members: [(String, JSONText)]) -> String {
        let lines = members.map { "    \(JSONText.string($0.0).text): \($0.1.text)" }
        return "{\n" + lines.joined(separator: ",\n") + "\n}"
    }

    /// RFC 8259 section 7; control characters of every kind are escaped, so that a line of JSON is safe on a terminal too.
    private static func write(_ text: String, to out: inout String) {
        out += "\""
        // Nearly every text, and a list has millions.
        if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") })
        {
            out += text
            out += "\""
            return
        }
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\t": out += "\\t"
            default:
                if TerminalText.isUnsafe(scalar) {
                    escape(scalar, to: &out)
                } else {
                    out.unicodeScalars.append(scalar)
                }
            }
        }
        out += "\""
    }
}

internal import Prefetch
internal import PrefetchModel
internal import WebImage

/// A manifest as a table: what is known of each line, and behind it what the list had beside its URL.
struct BatchTable: Sendable {
    /// How values are told apart.
    enum Form: Sendable {
        /// By commas (RFC 4180): every text is quoted, lines end with CR LF.
        case commas
        /// By tabs: only what has a tab, a quote or a line end in it is quoted, lines end with LF.
        case tabs
    }

    /// With one of these a spreadsheet begins a formula (OWASP, CSV injection).
    private static let formulas: Set<UnicodeScalar> = ["=", "+", "-", "@", "\t", "\r"]

    /// Our own columns.
    private static let own = ExportedLine.fields.filter(\.isRequired)

    let form: Form
    /// The columns of the list, by name; one that is called as ours is has `list_` before it.
    let columns: [String]

    /// The names, with the end of the line.
    var head: String {
        let names = Self.own.map(\.name)
        let kept = columns.map { names.contains($0) ? "list_\($0)" : $0 }
        // Ours need no quotes, and had none before there were others.
        return joined(names + kept.map { $0.contains(where: { !$0.isLetter && $0 != "_" }) ? text($0) : $0 })
    }

    /// One line of it, with its end; an unknown value is empty.
    func line(_ line: ExportedLine) -> String {
        let fields = Self.own.map { field in
            switch field.value(line)?.json {
            case .string(let value): text(Self.url(value))
            case nil, .null: ""
            case let value?: value.text
            }
        }
        return joined(fields + columns.map { cell(line.result.columns?[$0]) })
    }

    /// The forms in which manifests of any kind have a URL.
    static func spellings(_ url: String) -> [String] {
        [url, ShownURL.url(url)].flatMap { [$0, cell(Self.url($0))] }
    }

    private func joined(_ fields: [String]) -> String {
        form == .commas ? fields.joined(separator: ",") + "\r\n" : fields.joined(separator: "\t") + "\n"
    }

    /// A URL with its unsafe characters percent-encoded: the same request, in characters that reorder nothing.
    private static func url(_ url: String) -> String {
        guard url.contains("://"), url.unicodeScalars.contains(where: TerminalText.isUnsafe) else { return url }
        return url.unicodeScalars.reduce(into: "") { out, scalar in
            guard TerminalText.isUnsafe(scalar) else {
                out.unicodeScalars.append(scalar)
                return
            }
            for byte in String(scalar).utf8 {
                out += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16).uppercased()
            }
        }
    }

    /// What a cell says: no control character but those a table may have, and no formula.
    private static func cell(_ value: String) -> String {
        let text = value.unicodeScalars.reduce(into: "") { out, scalar in
            if TerminalText.isUnsafe(scalar) && !["\t", "\r", "\n"].contains(scalar) {
                out += TerminalText.escaped(String(scalar))
            } else {
                out.unicodeScalars.append(scalar)
            }
        }
        guard let first = text.unicodeScalars.first, formulas.contains(first) else { return text }
        return "'" + text
    }

    /// A number is none of the texts that a spreadsheet may take for a formula.
    private func cell(_ value: ColumnValue?) -> String {
        if case .json(let json) = value, let first = json.utf8.first,
            first == UInt8(ascii: "-") || (0x30...0x39).contains(first)
        {
            return json
        }
        return text(value.map(\.shownText))
    }

    private func text(_ value: String?) -> String {
        guard let value = value.map(Self.cell) else { return "" }
        let isPlain = form == .tabs && !value.unicodeScalars.contains { "\t\"\r\n".unicodeScalars.contains($0) }
        return isPlain ? value : "\"\(value.replacing("\"", with: "\"\""))\""
    }
}

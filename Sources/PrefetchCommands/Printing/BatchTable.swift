internal import Prefetch
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

    /// Our own columns.
    private static let names = [
        "line", "url", "outcome", "path", "bytes", "sha256", "format", "width", "height", "level",
    ]

    let form: Form
    /// The columns of the list, by name; one that is called as ours is has `list_` before it.
    let columns: [String]

    /// The names, with the end of the line.
    var head: String {
        let kept = columns.map { Self.names.contains($0) ? "list_\($0)" : $0 }
        // Ours need no quotes, and had none before there were others.
        return joined(Self.names + kept.map { $0.contains(where: { !$0.isLetter && $0 != "_" }) ? text($0) : $0 })
    }

    /// One line of it, with its end; an unknown value is empty.
    func line(_ line: ExportedLine) -> String {
        func number(_ value: Int?) -> String { value.map(String.init) ?? "" }
        let image = line.image
        let fields = [
            number(line.result.line), text(line.result.url), text(line.result.outcome?.name), text(image?.path),
            number(image?.bytes), text(image?.sha256), text(image?.format?.rawValue), number(image?.width),
            number(image?.height), text(image?.level?.name),
        ]
        return joined(fields + columns.map { text(line.result.columns?[$0]) })
    }

    private func joined(_ fields: [String]) -> String {
        form == .commas ? fields.joined(separator: ",") + "\r\n" : fields.joined(separator: "\t") + "\n"
    }

    private func text(_ value: String?) -> String {
        guard let value else { return "" }
        let isPlain = form == .tabs && !value.unicodeScalars.contains { "\t\"\r\n".unicodeScalars.contains($0) }
        return isPlain ? value : "\"\(value.replacing("\"", with: "\"\""))\""
    }
}

/// How the fields of a table are told apart, by its first rows.
enum TableGuess {
    private static let comma = UInt8(ascii: ","), tab = UInt8(ascii: "\t"), semicolon = UInt8(ascii: ";")

    /// The most rows that are looked at.
    static let rows = 100

    struct Separator: Equatable {
        var byte: UInt8
        /// Rows that are none of the table: the `sep=;` of spreadsheets.
        var skipped = 0
    }

    /// The separator of what is known to be a table.
    /// * `usual`: that of its name.
    static func separator(_ head: ArraySlice<UInt8>, usual: UInt8, _ options: ListInput.Options) -> Separator {
        if let said = said(head) { return said }
        return find(head, [tab, usual, comma, semicolon], options, usual: usual) ?? Separator(byte: usual)
    }

    /// The separator of what may be a table; nil where it is a list of lines.
    static func separator(ofLines head: ArraySlice<UInt8>) -> Separator? {
        if let said = said(head) { return said }
        let line = head.prefix { $0 != UInt8(ascii: "\n") }
        let first = Array(URLColumn.trimmed(line.starts(with: [0xEF, 0xBB, 0xBF]) ? line.dropFirst(3) : line))
        // A URL, an object or a comment begins a list; other brackets are of nothing that can be read.
        guard let byte = first.first, !"#{[<".utf8.contains(byte), URLList.entry(first, number: 1)?.isInvalid == true
        else { return nil }
        return find(head, [tab, comma, semicolon], ListInput.Options(), usual: nil)
    }

    /// What the first line says of it.
    private static func said(_ head: ArraySlice<UInt8>) -> Separator? {
        let text = head.starts(with: [0xEF, 0xBB, 0xBF]) ? head.dropFirst(3) : head
        let line = text.prefix(6)
        guard line.starts(with: "sep=".utf8), line.count == 6, let byte = line.dropFirst(4).first, let end = line.last,
            [comma, tab, semicolon].contains(byte), end == UInt8(ascii: "\n") || end == UInt8(ascii: "\r")
        else { return nil }
        return Separator(byte: byte, skipped: 1)
    }

    /// * `usual`: the separator of a table's name; nil: nothing says that it is one.
    private static func find(
        _ head: ArraySlice<UInt8>, _ candidates: [UInt8], _ options: ListInput.Options, usual: UInt8?
    ) -> Separator? {
        var tables: [(separator: UInt8, rows: [[String]])] = []
        for separator in candidates where !tables.contains(where: { $0.separator == separator }) {
            let rows = rows(of: head, separator)
            guard let first = rows.first, usual == nil ? isEven(rows) : separator == usual || first.count > 1 else {
                continue
            }
            tables.append((separator, rows))
            if isClear(first, separator, options) { return Separator(byte: separator) }
        }
        // No name says it: the first rows do. Without a name for a table, commas are too usual in texts.
        let wide = tables.filter { $0.rows[0].count > 1 && (usual != nil || $0.separator != comma) }
        let best = wide.filter { table in table.rows.dropFirst().contains { $0.contains(where: URLLines.isURL) } }
        return best.max { $0.rows[0].count < $1.rows[0].count }.map { Separator(byte: $0.separator) }
    }

    /// Whether all rows of several have as many fields as the first, more than one.
    private static func isEven(_ rows: [[String]]) -> Bool {
        rows[0].count > 1 && rows.allSatisfy { $0.count == rows[0].count }
    }

    /// Whether a first row names its URLs, or has one.
    private static func isClear(_ first: [String], _ separator: UInt8, _ options: ListInput.Options) -> Bool {
        if let word = options.urlColumn {
            return Int(word).map { $0 <= first.count } ?? first.contains { $0.lowercased() == word.lowercased() }
        }
        if let url = first.firstIndex(where: URLLines.isURL) {
            // A URL may have a semicolon.
            return separator != semicolon || url > 0
        }
        return !URLColumn.places(in: first).isEmpty
    }

    /// The first rows, of whole ones or of the beginning of the first.
    private static func rows(of head: ArraySlice<UInt8>, _ separator: UInt8) -> [[String]] {
        var rows: [[String]] = []
        var reader = CSVReader(separator: separator)
        func add(_ record: CSVReader.Record) {
            if rows.count < Self.rows { rows.append(record.urls) }
        }
        let end = head.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? head.endIndex
        try? reader.read(head[..<end], add)
        if rows.isEmpty { try? reader.finish(add) }
        return rows
    }
}

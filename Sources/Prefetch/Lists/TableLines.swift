/// Makes lines of the rows of a table. A row becomes the line with the number of its first line, so that messages fit the table.
struct TableLines {
    /// Warnings that name their line.
    private static let mostOdd = 5

    let columns: TableColumns
    /// The first row.
    let first: [String]
    private let separator: TableGuess.Separator
    private let path: String
    private let form: ImportedLine.Form
    private var reader: CSVReader
    private var (rows, odd) = (0, 0)
    /// The number of the next line.
    private var line = 1

    /// By the first rows.
    /// * `isWhole`: whether these are all of its bytes.
    /// - Returns: nil if more bytes may tell what its columns are, or if it has no row.
    /// - Throws: `unreadableList` if a column is missing.
    init?(
        _ head: [UInt8], _ separator: TableGuess.Separator, _ options: ListInput.Options, path: String, isWhole: Bool
    ) throws(PrefetchError) {
        var rows: [[String]] = []
        var reader = CSVReader(separator: separator.byte)
        func take(_ record: CSVReader.Record) {
            if rows.count <= TableGuess.rows { rows.append(record.urls) }
        }
        try reader.read(head[...], take)
        if isWhole { try reader.finish(take) }
        guard rows.count > separator.skipped else { return nil }
        let isEnough = isWhole || rows.count > TableGuess.rows
        let (first, others) = (rows[separator.skipped], Array(rows.dropFirst(separator.skipped + 1)))
        // A first row that says it all need not be followed by others.
        do throws(PrefetchError) { columns = try TableColumns(first, others, options) } catch {
            guard isEnough else { return nil }
            throw error
        }
        self.first = first
        form = ImportedLine.Form(columns.kept)
        (self.separator, self.path) = (separator, path)
        self.reader = CSVReader(separator: separator.byte)
    }

    /// Appends the lines of the rows that end in a piece.
    /// * `warn`: called with what is probably not meant.
    mutating func read(
        _ piece: ArraySlice<UInt8>, into lines: inout [UInt8], _ warn: (String) -> Void
    ) throws(PrefetchError) {
        var reader = reader
        var added = lines
        lines = []
        defer { (self.reader, lines) = (reader, added) }
        try reader.read(piece) { record throws(PrefetchError) in try add(record, to: &added, warn) }
    }

    mutating func finish(into lines: inout [UInt8], _ warn: (String) -> Void) throws(PrefetchError) {
        var reader = reader
        var added = lines
        defer { lines = added }
        try reader.finish { record throws(PrefetchError) in try add(record, to: &added, warn) }
        if odd > Self.mostOdd { warn("\(odd - Self.mostOdd) more quoted fields are as long") }
    }

    private mutating func add(
        _ record: CSVReader.Record, to lines: inout [UInt8], _ warn: (String) -> Void
    ) throws(PrefetchError) {
        rows += 1
        guard rows > separator.skipped else { return }
        if let tall = record.tall, tall.isOdd {
            odd += 1
            if odd <= Self.mostOdd { warn(Self.warning(of: tall)) }
        }
        if record.line > line {
            lines += repeatElement(UInt8(ascii: "\n"), count: record.line - line)
            line = record.line
        }
        if rows == separator.skipped + 1 && columns.hasHeader { return }
        func cell(_ column: Int) -> ArraySlice<UInt8> { column < record.count ? record[column] : [] }
        let known = lines.count
        let digest = columns.sha256.map { URLColumn.trimmed(cell($0)) } ?? []
        let url = URLColumn.urlBytes(cell(columns.url))
        record.withFields { ImportedLine.write(url, sha256: digest, form, $0, to: &lines) }
        guard lines.count - known <= LineReader.longest else { throw LineReader.tooLong(record.line, path) }
        line += 1
    }

    private static func warning(of field: CSVReader.Tall) -> String {
        "the quoted field that begins in line \(field.line) has \(field.lines) lines"
            + (field.hasURL ? ", and a URL in them" : "") + "; if its quote is not meant, rows are lost in it"
    }
}

extension CSVReader.Record {
    /// Its fields as URLs are read out of them.
    var urls: [String] { (0..<count).map { URLColumn.url(self[$0]) } }
}

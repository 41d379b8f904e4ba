/// Parses a table: fields separated by commas, semicolons or tabs; quoted fields may contain separators, doubled quotes and line ends (RFC 4180). Input
/// comes in pieces of any size; only the current record is kept.
struct CSVReader {
    struct Record: Equatable {
        var fields: [[UInt8]]
        /// The line it begins at, from 1, and the number of its lines.
        var line: Int, lines: Int
        /// The quoted field with the most lines.
        var tall: Tall?
    }

    /// A quoted field of several lines, which may be rows behind a quote that was not meant.
    struct Tall: Equatable {
        /// The line it begins at, from 1, and the number of its lines.
        var line: Int, lines: Int
        /// Whether one of its further lines has a URL.
        var hasURL: Bool

        /// Whether rows have probably vanished in it.
        var isOdd: Bool { lines > 10 || hasURL }
    }

    private enum State {
        case start
        case plain
        case quoted
        /// After a quote within quotes: the end of the field, or the first of two.
        case quote
    }

    private let separator: UInt8
    /// Bytes that a row may have: an unclosed quote must not take all memory.
    private let longest: Int
    private var state = State.start
    private var field: [UInt8] = []
    private var fields: [[UInt8]] = []
    private var size = 0
    /// The line of the next byte, and the first line of the record.
    private var line = 1, first = 1
    private var isFirst = true
    /// The line of the last opened quote.
    private var quoted = 0
    private var tall: Tall?

    /// * `separator`: a comma, a semicolon or a tab.
    init(separator: UInt8, longest: Int = LineReader.longest) { (self.separator, self.longest) = (separator, longest) }

    /// Parses a piece; `body` gets each row that ends in it, without blank lines.
    /// - Throws: `unreadableList` if a row is too long; errors of `body`.
    mutating func read(
        _ bytes: ArraySlice<UInt8>, _ body: (Record) throws(PrefetchError) -> Void
    ) throws(PrefetchError) {
        for byte in bytes {
            size += 1
            if size > longest { throw tooLong }
            switch (state, byte) {
            case (.start, UInt8(ascii: "\"")) where field.isEmpty || isMark:
                field.removeAll()
                quoted = line
                state = .quoted
            case (.quoted, UInt8(ascii: "\"")): state = .quote
            case (.quote, UInt8(ascii: "\"")):
                field.append(byte)
                state = .quoted
            case (.quoted, _):
                field.append(byte)
                if byte == UInt8(ascii: "\n") { line += 1 }
            case (_, separator): endField()
            case (_, UInt8(ascii: "\n")):
                if field.last == UInt8(ascii: "\r"), state != .quote { field.removeLast() }
                endField()
                line += 1
                try endRecord(body)
            case (.quote, UInt8(ascii: "\r")): continue
            default:
                // Text after a closed quote too: it is kept, not refused.
                field.append(byte)
                state = isMark ? .start : .plain
            }
        }
    }

    /// The last row, without a line end.
    /// - Throws: `unreadableList` if a quote is still open; errors of `body`.
    mutating func finish(_ body: (Record) throws(PrefetchError) -> Void) throws(PrefetchError) {
        if state == .quoted { throw endless }
        guard size > 0 else { return }
        if field.last == UInt8(ascii: "\r"), state != .quote { field.removeLast() }
        endField()
        line += 1
        try endRecord(body)
    }

    /// Whether the first field so far is a byte order mark, or the beginning of one.
    private var isMark: Bool {
        isFirst && fields.isEmpty && !field.isEmpty && field.count <= 3
            && ([0xEF, 0xBB, 0xBF] as [UInt8]).starts(with: field)
    }

    private var endless: PrefetchError {
        PrefetchError(
            .unreadableList, "line \(first): a quote that begins there is not closed",
            hint: "write a quote within quotes twice, and see that each one is closed")
    }

    private var tooLong: PrefetchError {
        let isOpen = state == .quoted
        return PrefetchError(
            .unreadableList,
            "line \(first): the row is longer than \(longest >> 20) MiB"
                + (isOpen ? "; the quote in line \(quoted) is not closed" : ""),
            hint: isOpen
                ? "write a quote within quotes twice, and see that each one is closed"
                : "leave columns out that nothing needs")
    }

    private mutating func noteTall() {
        guard quoted > 0, line > quoted else { return }
        let rest = field.drop { $0 != UInt8(ascii: "\n") }
        let found = Tall(
            line: quoted, lines: line - quoted + 1,
            hasURL: ["http://", "https://"].contains { !rest.ranges(of: Array($0.utf8)).isEmpty })
        if found.isOdd || tall == nil { tall = found }
    }

    private mutating func endField() {
        noteTall()
        quoted = 0
        if isFirst, fields.isEmpty, field.starts(with: [0xEF, 0xBB, 0xBF]) { field.removeFirst(3) }
        fields.append(field)
        field.removeAll(keepingCapacity: true)
        state = .start
    }

    private mutating func endRecord(_ body: (Record) throws(PrefetchError) -> Void) throws(PrefetchError) {
        let record = Record(fields: fields, line: first, lines: line - first, tall: tall)
        tall = nil
        fields.removeAll(keepingCapacity: true)
        (first, size, isFirst) = (line, 0, false)
        if record.fields.count > 1 || !record.fields[0].isEmpty { try body(record) }
    }
}

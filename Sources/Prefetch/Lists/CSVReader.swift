/// Parses a table: fields separated by commas or tabs; quoted fields may contain separators, doubled quotes and line ends (RFC 4180). Input
/// comes in pieces of any size; only the current record is kept.
struct CSVReader {
    struct Record: Equatable {
        var fields: [[UInt8]]
        /// The line it begins at, from 1, and the number of its lines.
        var line: Int, lines: Int
    }

    /// The longest row: an unclosed quote must not take all memory.
    static let longest = 1 << 20

    private enum State {
        case start
        case plain
        case quoted
        /// After a quote within quotes: the end of the field, or the first of two.
        case quote
    }

    private let separator: UInt8
    private var state = State.start
    private var field: [UInt8] = []
    private var fields: [[UInt8]] = []
    private var size = 0
    /// The line of the next byte, and the first line of the record.
    private var line = 1, first = 1
    private var isAfterReturn = false
    private var isFirst = true

    /// * `separator`: a comma or a tab.
    init(separator: UInt8) { self.separator = separator }

    /// Parses a piece; `body` gets each row that ends in it, without blank lines.
    /// - Throws: `unreadableList` if a row is too long; errors of `body`.
    mutating func read(
        _ bytes: ArraySlice<UInt8>, _ body: (Record) throws(PrefetchError) -> Void
    ) throws(PrefetchError) {
        for byte in bytes {
            size += 1
            if size > Self.longest { throw endless }
            switch (state, byte) {
            case (.start, UInt8(ascii: "\"")) where field.isEmpty || isMark:
                field.removeAll()
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

    private mutating func endField() {
        if isFirst, fields.isEmpty, field.starts(with: [0xEF, 0xBB, 0xBF]) { field.removeFirst(3) }
        fields.append(field)
        field.removeAll(keepingCapacity: true)
        state = .start
    }

    private mutating func endRecord(_ body: (Record) throws(PrefetchError) -> Void) throws(PrefetchError) {
        endField()
        let record = Record(fields: fields, line: first, lines: line - first)
        fields.removeAll(keepingCapacity: true)
        (first, size, isFirst) = (line, 0, false)
        if record.fields.count > 1 || !record.fields[0].isEmpty { try body(record) }
    }
}

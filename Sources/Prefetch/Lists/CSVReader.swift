/// Parses a table: fields separated by commas, semicolons or tabs; quoted fields may contain separators, doubled quotes and line ends (RFC 4180). Input
/// comes in pieces of any size; only the current record is kept.
struct CSVReader {
    struct Record {
        /// Of all its fields, one after the other, and where each ends.
        fileprivate(set) var bytes: [UInt8] = []
        fileprivate var ends: [Int] = []
        /// The line it begins at, from 1, and the number of its lines.
        fileprivate(set) var line = 1, lines = 0
        /// The quoted field with the most lines.
        fileprivate(set) var tall: Tall?

        /// The number of its fields.
        var count: Int { ends.count }

        subscript(field: Int) -> ArraySlice<UInt8> { bytes[range(field)] }

        private func range(_ field: Int) -> Range<Int> { (field == 0 ? 0 : ends[field - 1])..<ends[field] }

        /// Calls `body` with what returns the bytes of a field, none of one that it does not have.
        func withFields(_ body: ((Int) -> UnsafeBufferPointer<UInt8>) -> Void) {
            bytes.withUnsafeBufferPointer { bytes in
                body { UnsafeBufferPointer(rebasing: bytes[$0 < count ? range($0) : 0..<0]) }
            }
        }
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
    private var record = Record()
    /// Where the current field begins in the record.
    private var start = 0
    private var size = 0
    /// The line of the next byte, and the first line of the record.
    private var line = 1, first = 1
    private var isFirst = true
    /// The line of the last opened quote.
    private var quoted = 0

    /// * `separator`: a comma, a semicolon or a tab.
    init(separator: UInt8, longest: Int = LineReader.longest) { (self.separator, self.longest) = (separator, longest) }

    /// Parses a piece; `body` gets each row that ends in it, without blank lines.
    /// - Throws: `unreadableList` if a row is too long; errors of `body`.
    mutating func read(
        _ bytes: ArraySlice<UInt8>, _ body: (Record) throws(PrefetchError) -> Void
    ) throws(PrefetchError) {
        try bytes.withUnsafeBufferPointer { bytes throws(PrefetchError) in try read(bytes, body) }
    }

    private mutating func read(
        _ bytes: UnsafeBufferPointer<UInt8>, _ body: (Record) throws(PrefetchError) -> Void
    ) throws(PrefetchError) {
        var place = 0
        while place < bytes.count {
            let end = endOfText(in: bytes, from: place)
            if end > place {
                size += end - place
                if size > longest { throw tooLong }
                let text = UnsafeBufferPointer(rebasing: bytes[place..<end])
                record.bytes += text
                if state == .quoted {
                    line += text.count(of: UInt8(ascii: "\n"))
                } else {
                    state = .plain
                }
                place = end
            } else {
                size += 1
                if size > longest { throw tooLong }
                try step(bytes[place], body)
                place += 1
            }
        }
    }

    /// Where the bytes that are the field's as they are end.
    private func endOfText(in bytes: UnsafeBufferPointer<UInt8>, from place: Int) -> Int {
        switch state {
        case .quoted: return bytes.place(of: UInt8(ascii: "\""), or: UInt8(ascii: "\""), from: place)
        case .plain: return bytes.place(of: separator, or: UInt8(ascii: "\n"), from: place)
        // A quote opens the field, if nothing but a byte order mark is in front of it.
        case .start where bytes[place] != UInt8(ascii: "\"") && !mayBeMark:
            return bytes.place(of: separator, or: UInt8(ascii: "\n"), from: place)
        case .start, .quote: return place
        }
    }

    private mutating func step(
        _ byte: UInt8, _ body: (Record) throws(PrefetchError) -> Void
    ) throws(PrefetchError) {
        switch (state, byte) {
        case (.start, UInt8(ascii: "\"")) where fieldSize == 0 || isMark:
            if fieldSize > 0 { record.bytes.removeSubrange(start...) }
            quoted = line
            state = .quoted
        case (.quoted, UInt8(ascii: "\"")): state = .quote
        case (.quote, UInt8(ascii: "\"")):
            record.bytes.append(byte)
            state = .quoted
        case (.quoted, _):
            record.bytes.append(byte)
            if byte == UInt8(ascii: "\n") { line += 1 }
        case (_, separator): endField()
        case (_, UInt8(ascii: "\n")):
            removeReturn()
            endField()
            line += 1
            try endRecord(body)
        case (.quote, UInt8(ascii: "\r")): break
        default:
            // Text after a closed quote too: it is kept, not refused.
            record.bytes.append(byte)
            state = isMark ? .start : .plain
        }
    }

    /// The last row, without a line end.
    /// - Throws: `unreadableList` if a quote is still open; errors of `body`.
    mutating func finish(_ body: (Record) throws(PrefetchError) -> Void) throws(PrefetchError) {
        if state == .quoted { throw endless }
        guard size > 0 else { return }
        removeReturn()
        endField()
        line += 1
        try endRecord(body)
    }

    private var field: ArraySlice<UInt8> { record.bytes[start...] }
    private var fieldSize: Int { record.bytes.count - start }

    private mutating func removeReturn() {
        if fieldSize > 0, record.bytes.last == UInt8(ascii: "\r"), state != .quote { record.bytes.removeLast() }
    }

    /// Whether the current field may begin with a byte order mark that is not whole yet, or has just ended.
    private var mayBeMark: Bool { isFirst && record.count == 0 && fieldSize <= Self.mark.count }

    /// Whether the first field so far is a byte order mark, or the beginning of one.
    private var isMark: Bool { mayBeMark && fieldSize > 0 && Self.mark.starts(with: field) }

    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

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
        if found.isOdd || record.tall == nil { record.tall = found }
    }

    private mutating func endField() {
        noteTall()
        quoted = 0
        if isFirst, record.count == 0, field.starts(with: Self.mark) { record.bytes.removeFirst(Self.mark.count) }
        record.ends.append(record.bytes.count)
        start = record.bytes.count
        state = .start
    }

    private mutating func endRecord(_ body: (Record) throws(PrefetchError) -> Void) throws(PrefetchError) {
        (record.line, record.lines) = (first, line - first)
        if record.count > 1 || !record.bytes.isEmpty { try body(record) }
        record.bytes.removeAll(keepingCapacity: true)
        record.ends.removeAll(keepingCapacity: true)
        (record.tall, start) = (nil, 0)
        (first, size, isFirst) = (line, 0, false)
    }
}

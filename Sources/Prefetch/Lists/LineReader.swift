internal import Glibc

/// Reads a file line by line, in the memory of its longest line.
struct LineReader: ~Copyable {
    /// Bytes that a line may have.
    static let longest = 16 << 20
    private static let usualBuffer = 1 << 18

    /// What it is called in messages.
    private let path: String
    /// -1: all bytes are in the buffer.
    private let file: Int32
    /// Whose file it is; nil: the reader's own.
    private let owner: OpenedList?
    /// Where a file is read that others read too; nil: where it is.
    private var place: Int?
    private var buffer: [UInt8]
    private var start = 0
    private var end = 0
    private var atEnd = false
    private var base = 0
    private(set) var lineOffset = 0
    private(set) var lineNumber = 0
    /// Called with every byte of the file, in order.
    var observe: (([UInt8], Range<Int>) -> Void)?

    /// Opens a list that is read more than once.
    /// - Throws: `notFound` or `unreadableList` with the reason, the latter also for streams.
    init(path: String) throws(PrefetchError) {
        (self.path, owner) = (path, nil)
        try ListFile.requireRepeatable(path)
        file = try ListFile.open(path)
        buffer = [UInt8](repeating: 0, count: Self.usualBuffer)
    }

    /// Reads bytes instead of a file.
    init(_ bytes: [UInt8], called path: String) {
        (self.path, file, owner, buffer) = (path, -1, nil, bytes)
        (end, atEnd) = (bytes.count, true)
    }

    /// Reads an open file from its start.
    init(_ lines: OpenedList, called path: String) {
        (self.path, file, owner, place) = (path, lines.descriptor, lines, 0)
        buffer = [UInt8](repeating: 0, count: Self.usualBuffer)
    }

    /// Opens a file, a pipe, or `-` for standard input, for one pass.
    /// - Throws: `notFound` or `unreadableList` with the reason.
    init(once path: String) throws(PrefetchError) {
        (self.path, owner) = (path, nil)
        file = try ListFile.open(path)
        buffer = [UInt8](repeating: 0, count: Self.usualBuffer)
    }

    deinit { if file >= 0, owner == nil { close(file) } }

    /// The byte behind the line that was returned last.
    var offset: Int { base + start }

    /// Continues at the start of a line.
    /// - Throws: `unreadableList` if the file is not seekable.
    mutating func seek(to offset: Int, line: Int) throws(PrefetchError) {
        if place != nil {
            place = offset
        } else if lseek(file, offset, SEEK_SET) != offset {
            throw Self.failure(errno)
        }
        (base, start, end, atEnd) = (offset, 0, 0, false)
        lineNumber = line - 1
    }

    /// Continues at a later byte of a file that others read too; lines are not counted any more.
    mutating func skip(to offset: Int) {
        guard place != nil else { return }
        (place, base, start, end, atEnd) = (offset, offset, 0, 0, false)
    }

    /// Continues at the end of the file, which has grown by whole lines.
    mutating func resume() { atEnd = false }

    /// The next line without its end; nil at the end of the file.
    /// - Throws: `unreadableList` if reading fails (a folder, a broken disk), or with the number of a line that is too long.
    mutating func next() throws(PrefetchError) -> [UInt8]? {
        var searched = start
        lineOffset = base + start
        while true {
            if let newline = buffer[searched..<end].place(of: UInt8(ascii: "\n")) {
                lineNumber += 1
                defer { start = newline + 1 }
                return try trimmed(start..<newline)
            }
            searched = end
            if atEnd {
                guard start < end else { return nil }
                lineNumber += 1
                defer { start = end }
                return try trimmed(start..<end)
            }
            if end - start > Self.longest + 1 { throw Self.tooLong(lineNumber + 1, path) }
            if end == buffer.count, start == 0 {
                buffer += [UInt8](repeating: 0, count: buffer.count)
            } else if end == buffer.count {
                buffer.replaceSubrange(0..<(end - start), with: buffer[start..<end])
                base += start
                end -= start
                searched -= start
                start = 0
            }
            try fill()
        }
    }

    private mutating func fill() throws(PrefetchError) {
        let (from, capacity) = (end, buffer.count - end)
        let place = place
        let count = buffer.withUnsafeMutableBytes { bytes in
            guard let place else { return read(file, bytes.baseAddress! + from, capacity) }
            return pread(file, bytes.baseAddress! + from, capacity, place)
        }
        guard count >= 0 else {
            if errno == EINTR { return }
            throw Self.failure(errno)
        }
        if count == 0 { atEnd = true }
        if let place { self.place = place + count }
        observe?(buffer, end..<(end + count))
        end += count
    }

    private static func failure(_ code: Int32) -> PrefetchError {
        PrefetchError(
            .unreadableList, "cannot read the list: \(String(cString: strerror(code)))",
            hint: "give a text file with one URL a line, or - for standard input")
    }

    /// Why a line is refused.
    static func tooLong(_ number: Int, _ path: String) -> PrefetchError {
        PrefetchError(
            .unreadableList, "line \(number) of \(ListFile.name(of: path)) is longer than \(longest >> 20) MiB",
            hint: "leave columns out that nothing needs")
    }

    private func trimmed(_ range: Range<Int>) throws(PrefetchError) -> [UInt8] {
        // With its CR.
        if range.count > Self.longest + 1 { throw Self.tooLong(lineNumber, path) }
        var (first, end) = (range.lowerBound, range.upperBound)
        let blank: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: "\r") }
        if lineNumber == 1, buffer[range].starts(with: [0xEF, 0xBB, 0xBF]) { first += 3 }
        while first < end, blank(buffer[first]) { first += 1 }
        while first < end, blank(buffer[end - 1]) { end -= 1 }
        return Array(buffer[first..<end])
    }
}

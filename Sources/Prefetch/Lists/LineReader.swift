internal import Glibc

/// Reads a file line by line, in the memory of its longest line.
struct LineReader: ~Copyable {
    /// Bytes that a line may have.
    static let longest = 16 << 20

    private let path: String
    private let file: Int32
    private var buffer = [UInt8](repeating: 0, count: 1 << 18)
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
        self.path = path
        try ListFile.requireRepeatable(path)
        file = try ListFile.open(path)
    }

    /// Opens a file, a pipe, or `-` for standard input, for one pass.
    /// - Throws: `notFound` or `unreadableList` with the reason.
    init(once path: String) throws(PrefetchError) {
        self.path = path
        file = try ListFile.open(path)
    }

    deinit { close(file) }

    /// Continues at the start of a line.
    /// - Throws: `unreadableList` if the file is not seekable.
    mutating func seek(to offset: Int, line: Int) throws(PrefetchError) {
        guard lseek(file, offset, SEEK_SET) == offset else { throw Self.failure(errno) }
        (base, start, end, atEnd) = (offset, 0, 0, false)
        lineNumber = line - 1
    }

    /// Continues at the end of the file, which has grown by whole lines.
    mutating func resume() { atEnd = false }

    /// The next line without its end; nil at the end of the file.
    /// - Throws: `unreadableList` if reading fails (a folder, a broken disk), or with the number of a line that is too long.
    mutating func next() throws(PrefetchError) -> [UInt8]? {
        var searched = start
        lineOffset = base + start
        while true {
            if let newline = newline(in: searched..<end) {
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

    private func newline(in range: Range<Int>) -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard let first = bytes.baseAddress, let found = memchr(first + range.lowerBound, 0x0A, range.count) else {
                return nil
            }
            return UnsafeRawPointer(found) - first
        }
    }

    private mutating func fill() throws(PrefetchError) {
        let (from, capacity) = (end, buffer.count - end)
        let count = buffer.withUnsafeMutableBytes { read(file, $0.baseAddress! + from, capacity) }
        guard count >= 0 else {
            if errno == EINTR { return }
            throw Self.failure(errno)
        }
        if count == 0 { atEnd = true }
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

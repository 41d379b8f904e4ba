internal import WebImage

/// Neighbouring entries of a list.
package struct ListPiece: Sendable, Equatable {
    var indices: Range<Int>
    /// The line of the list with which it begins.
    var line: Int
    /// The byte of the file with which it begins; nil: the file does not have it any more.
    var offset: Int?

    /// All of a list that is as it was.
    static let whole = ListPiece(indices: 0..<Int.max, line: 1, offset: 0)
}

/// Reads the entries of a list that was read before, in order from any place on.
///
/// It notes where every 1,024th begins; a seek starts at the nearest. The file stays open, so replacing the list under its name does no harm.
final class EntryReader {
    private struct Mark {
        var index: Int
        var offset: Int
        var line: Int
    }

    private static let step = 1_024

    private var reader: LineReader
    private let pieces: [ListPiece]
    /// Ascending.
    private var marks: [Mark] = []
    private var piece = 0
    /// The index of the next entry.
    private var index = 0

    /// * `pieces`: in the order of their indices, without gaps.
    /// - Throws: `notFound`, `unreadableList`.
    init(path: String, pieces: [ListPiece] = [.whole]) throws(PrefetchError) {
        reader = try LineReader(path: path)
        self.pieces = pieces
        if let first = pieces.first { try begin(first) }
    }

    /// Reads a list that may still get lines at its end.
    init(_ lines: OpenedList, called name: String) {
        reader = LineReader(lines, called: name)
        pieces = [.whole]
    }

    private func begin(_ piece: ListPiece) throws(PrefetchError) {
        if let offset = piece.offset { try reader.seek(to: offset, line: piece.line) }
    }

    /// The next entry; nil at the end. One that the file does not have any more is lost.
    /// - Throws: `unreadableList`.
    func next() throws(PrefetchError) -> PrefetchJob.Entry? {
        guard try enter(), let line = try line() else { return nil }
        defer { index += 1 }
        guard let bytes = line.bytes else { return PrefetchJob.Entry(lostAt: line.number) }
        return URLList.entry(bytes, number: line.number)
    }

    /// Goes to the piece with the next entry; false behind the last one.
    private func enter() throws(PrefetchError) -> Bool {
        while piece < pieces.count, index >= pieces[piece].indices.upperBound {
            piece += 1
            if piece < pieces.count { try begin(pieces[piece]) }
        }
        return piece < pieces.count
    }

    /// The line of the next entry, without its bytes where it is lost.
    private func line() throws(PrefetchError) -> (bytes: [UInt8]?, number: Int)? {
        let piece = pieces[piece]
        guard piece.offset != nil else { return (nil, piece.line + index - piece.indices.lowerBound) }
        while let line = try reader.next() {
            guard URLList.isEntry(line) else { continue }
            if index % Self.step == 0, index > marks.last?.index ?? -1 {
                marks.append(Mark(index: index, offset: reader.lineOffset, line: reader.lineNumber))
            }
            return (line, reader.lineNumber)
        }
        return nil
    }

    /// Makes the entry of an index the next one.
    /// - Returns: false if there are fewer.
    func seek(to target: Int) throws(PrefetchError) -> Bool {
        guard let home = pieces.firstIndex(where: { $0.indices.contains(target) }) else { return false }
        let first = pieces[home].indices.lowerBound
        let mark = marks[..<firstMark(behind: target)].last.flatMap { $0.index >= first ? $0 : nil }
        if home != piece || index > target || mark.map({ $0.index > index }) == true {
            piece = home
            index = mark?.index ?? first
            if let mark { try reader.seek(to: mark.offset, line: mark.line) } else { try begin(pieces[home]) }
        }
        // The file may have grown by whole lines.
        reader.resume()
        if pieces[home].offset == nil { index = target }
        while index < target {
            guard try line() != nil else { return false }
            index += 1
        }
        return true
    }

    private func firstMark(behind target: Int) -> Int {
        var (low, high) = (0, marks.count)
        while low < high {
            let middle = (low + high) / 2
            if marks[middle].index <= target { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The entry of an index. Cheap for ascending indices.
    /// - Throws: `unreadableList` if the file does not have it any more, or cannot be read.
    func entry(at index: Int) throws(PrefetchError) -> PrefetchJob.Entry {
        if try seek(to: index), let entry = try next(), !entry.isLost { return entry }
        throw PrefetchError(
            .unreadableList, "the list has no entry \(index) any more", hint: "it was changed while it was read")
    }

    /// Calls `body` with each entry from index `first` on, until it returns false.
    /// - Throws: errors of `body`; `unreadableList`.
    func forEach(
        from first: Int = 0, _ body: (PrefetchJob.Entry) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        guard try seek(to: first) else { return }
        while let entry = try next() {
            if try await !body(entry) { return }
        }
    }
}

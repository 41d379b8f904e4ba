internal import Glibc
internal import WebImage

/// Digests of a list's parts, which are kept where the list is too large for a copy: of a list that was changed they tell which lines are left, wherever
/// in the file these are now.
///
/// A part has 65,536 entries, and 40 bytes here, behind 32 about all of them. The file is beside the copies, and is removed like them.
struct ListSums: Equatable {
    struct Part: Equatable {
        var length: Int
        /// The first line of the list that it has.
        var line: Int
        /// A hash of that line, to find it by.
        var first: UInt64
        /// The first half of the SHA-256 of its bytes.
        var digest: [UInt8]
    }

    /// Entries of a part, unless a list says otherwise.
    static let usualSize = 1 << 16
    static let ending = ".list.sums"
    private static let magic: UInt64 = 0x3230_736d_7573_6c70
    /// Parts that turn out to be others than their first lines promise; a list of equal lines has no end of them.
    private static let mostWrong = 1_000

    /// Entries of a part.
    let size: Int
    /// Entries and lines of all parts.
    private(set) var total = 0, lines = 0
    private(set) var parts: [Part] = []

    // MARK: Making

    /// Forms them of a list while it is read for the first time.
    struct Maker {
        private let file: OpenedList
        private var sums: ListSums
        private var start = 0
        private var first: (line: Int, hash: UInt64)?

        /// * `size`: entries of a part.
        init(of file: OpenedList, size: Int) { (self.file, sums) = (file, ListSums(size: size)) }

        /// * `end`: the byte behind the line.
        mutating func add(_ line: [UInt8], number: Int, end: Int) {
            if first == nil { first = (number, ListSums.hash(line)) }
            sums.lines = number
            guard URLList.isEntry(line) else { return }
            sums.total += 1
            if sums.total % sums.size == 0 { close(end) }
        }

        private mutating func close(_ end: Int) {
            guard let first, let digest = file.digest(of: start..<end) else { return }
            sums.parts.append(
                Part(length: end - start, line: first.line, first: first.hash, digest: Array(digest.bytes.prefix(16))))
            (self.first, start) = (nil, end)
        }

        /// * `end`: the byte behind the last line.
        consuming func finish(_ end: Int) -> ListSums {
            close(end)
            return sums
        }
    }

    /// FNV-1a, 64 bits.
    private static func hash(_ line: [UInt8]) -> UInt64 {
        line.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    // MARK: Keeping

    private init(size: Int) { self.size = size }

    private static func path(_ hash: String, in folder: String) -> String { "\(folder)/\(hash)\(ending)" }

    /// The kept ones of a list; nil if there are none.
    /// * `hash`: that of the whole list.
    init?(of hash: String, in folder: String) {
        guard ListCopy(of: hash, in: folder) != nil, ListCopy.isPrivate(folder, S_IFDIR),
            case let path = Self.path(hash, in: folder), ListCopy.isPrivate(path, S_IFREG), let bytes = Self.bytes(path)
        else { return nil }
        // The time of its last use.
        utimensat(AT_FDCWD, path, nil, 0)
        func word(_ place: Int) -> UInt64 { (0..<8).reversed().reduce(0) { $0 << 8 | UInt64(bytes[8 * place + $1]) } }
        func number(_ place: Int) -> Int? { Int(exactly: word(place)) }
        guard bytes.count >= 32, bytes.count % 40 == 32, word(0) == Self.magic, let size = number(1),
            (1...Self.usualSize).contains(size), let total = number(2), let lines = number(3), total <= lines,
            (bytes.count - 32) / 40 == (total + size - 1) / size
        else { return nil }
        (self.size, self.total, self.lines) = (size, total, lines)
        for place in stride(from: 4, to: bytes.count / 8, by: 5) {
            guard let length = number(place), let line = number(place + 1), length < 1 << 48, line <= lines else {
                return nil
            }
            parts.append(
                Part(
                    length: length, line: line, first: word(place + 2),
                    digest: Array(bytes[(8 * place + 24)..<(8 * place + 40)])))
        }
    }

    private static func bytes(_ path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0, case let opened = OpenedList(file), let size = opened.mark?.size, size <= 1 << 20 else {
            return nil
        }
        return opened.bytes(0..<size)
    }

    /// Writes them; without room there are none.
    func keep(_ hash: String, in folder: String) {
        var bytes: [UInt8] = []
        func put(_ word: UInt64) { bytes += (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
        for word in [Self.magic, UInt64(size), UInt64(total), UInt64(lines)] { put(word) }
        for part in parts {
            for word in [UInt64(part.length), UInt64(part.line), part.first] { put(word) }
            bytes += part.digest
        }
        let path = Self.path(hash, in: folder)
        let temporary = "\(path).\(getpid())"
        guard let file = OpenFile(open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)) else {
            return
        }
        if OpenFile.write(bytes, to: file.descriptor) != 0 || rename(temporary, path) != 0 { unlink(temporary) }
    }

    // MARK: Finding

    /// The pieces of the list, with their places in a file that has some of its lines, and the lines that it does not have.
    /// - Throws: `unreadableList` if the file cannot be read.
    func pieces(in path: String) throws(PrefetchError) -> (pieces: [ListPiece], lost: [ClosedRange<Int>]) {
        let file = OpenedList(try ListFile.open(path))
        var homes = [Int?](repeating: nil, count: parts.count)
        let byFirst = Dictionary(grouping: parts.indices) { parts[$0].first }
        var reader = LineReader(file, called: path)
        var (next, wrong) = (0, 0)
        while next < parts.count, let line = try reader.next() {
            guard wrong < Self.mostWrong, let found = byFirst[Self.hash(line)]?.filter({ $0 >= next }) else { continue }
            let offset = reader.lineOffset
            let home = found.first { part in
                if file.digest(of: offset..<(offset + parts[part].length))?.bytes.prefix(16).elementsEqual(
                    parts[part].digest) == true
                {
                    return true
                }
                wrong += 1
                return false
            }
            guard let home else { continue }
            homes[home] = offset
            next = home + 1
            reader.skip(to: offset + parts[home].length)
        }
        return pieces(homes)
    }

    private func pieces(_ homes: [Int?]) -> (pieces: [ListPiece], lost: [ClosedRange<Int>]) {
        var pieces: [ListPiece] = []
        var lost: [ClosedRange<Int>] = []
        for (part, home) in homes.enumerated() {
            let indices = part * size..<min(total, (part + 1) * size)
            let isNeighbour =
                part > 0
                && (home == nil ? homes[part - 1] == nil : homes[part - 1].map { $0 + parts[part - 1].length } == home)
            if isNeighbour {
                pieces[pieces.count - 1].indices = pieces[pieces.count - 1].indices.lowerBound..<indices.upperBound
            } else {
                pieces.append(ListPiece(indices: indices, line: parts[part].line, offset: home))
            }
            guard home == nil else { continue }
            let end = part + 1 < parts.count ? parts[part + 1].line - 1 : lines
            let first = isNeighbour ? lost.removeLast().lowerBound : parts[part].line
            lost.append(first...max(first, end))
        }
        return (pieces, lost)
    }
}

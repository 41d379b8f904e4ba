internal import WebImage
internal import Glibc

/// A list of URLs in a text file: one URL or JSON object per line. Blank lines and lines that begin with `#` are skipped; a byte order
/// mark, CR LF and surrounding blanks are removed. An invalid line is an entry too: it counts, and ends as `invalidURL`. After a TAB a line
/// may have the required SHA-256 of the bytes (``ImageLock``).
package struct URLList: Sendable, Equatable {
    /// Bytes that a URL may have.
    static let longestURL = 65_536

    package var path: String
    /// The beginning of batch ids.
    package var stem: String
    /// What it was made of: absolute paths of files, or what a pipe is called; none where it is the file itself.
    package var sources: [String] = []
    /// Number of entries, including invalid ones; 0 where not all of it was read.
    package var total: Int
    /// Number of lines, including those without an entry.
    package var lines: Int
    /// Hex SHA-256 of the bytes that were read, and their number.
    package var hash: String
    var bytes = 0
    /// Whether these are all.
    var isWhole = true
    /// Hex SHA-256 of its beginning, by which it is found again in another place.
    package var head = ""
    var mark: FileMark?
    /// The folder with copies of lists that gets one of it while it is fed; nil: none.
    var copies: String?
    /// The union of options of single lines.
    package private(set) var lineOptions: WebImageOptions = []
    package private(set) var unknownMembers = UnknownMembers()

    /// Reads the whole list once, in constant memory: its total and hash.
    ///
    /// - Throws: `notFound`, `unreadableList`; the latter also where none of the first 200 entries is a URL, with a hint that
    ///   names what the file looks like, and where a line is not of the format, asks for what there is not, or has a member whose name is
    ///   nearly one that asks something.
    package init(path: String, format: ListFormat = .auto) throws(PrefetchError) {
        (self.path, stem) = (path, Self.stem(of: path))
        mark = FileMark(path: path)
        var reader = try LineReader(path: path)
        let hasher = SHA256Hasher()
        var first: [UInt8] = []
        reader.observe = { bytes, range in
            bytes.withUnsafeBytes { hasher.update(UnsafeRawBufferPointer(rebasing: $0[range])) }
            if first.count < 4096 { first += bytes[range].prefix(4096 - first.count) }
        }
        var checks = ListChecks()
        while let line = try reader.next() {
            guard Self.isEntry(line) else { continue }
            if checks.isNoList { break }
            try checks.add(line, number: reader.lineNumber, format)
        }
        if checks.total > 0 && !checks.hasURLs { throw ListGuess.error(path: path, head: first) }
        (total, lineOptions, unknownMembers) = (checks.total, checks.lineOptions, checks.unknownMembers)
        lines = reader.lineNumber
        hash = hasher.finishedHex()
        bytes = reader.offset
    }

    /// A list with known total and hash whose lines are all entries.
    package init(path: String, total: Int, hash: String) {
        (self.path, stem) = (path, Self.stem(of: path))
        (self.total, lines, self.hash) = (total, total, hash)
    }

    /// The path for other processes on this machine.
    package var absolutePath: String {
        PathText.resolved(path) ?? path
    }

    /// A file's name without folder and extension, reduced to the characters of a batch id.
    static func stem(of path: String) -> String {
        let name = path.split(separator: "/").last.map(String.init) ?? "list"
        let base = name.firstIndex(of: ".").map { String(name[..<$0]) } ?? name
        let kept = base.utf8.map { byte in
            PrefetchQueue.isValidName(String(UnicodeScalar(byte))) ? Character(UnicodeScalar(byte)) : "-"
        }
        return kept.isEmpty ? "list" : String(kept.prefix(40))
    }

    /// Calls `body` with each entry from index `first` on, until it returns false.
    /// - Throws: `unreadableList` if the file cannot be read (any more).
    package func forEach(
        from first: Int = 0, _ body: (PrefetchJob.Entry) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        try await EntryReader(path: path).forEach(from: first, body)
    }

    /// Whether a line is an entry, good or bad: not blank and no comment.
    static func isEntry(_ line: [UInt8]) -> Bool { line.first.map { $0 != UInt8(ascii: "#") } ?? false }

    /// Nil for a blank line or a comment.
    /// * `object`: what it is, if it was parsed before.
    /// * `columns`: whether what is kept of it is wanted.
    static func entry(
        _ line: [UInt8], number: Int, _ object: JSONLine? = nil, columns: Bool = true
    ) -> PrefetchJob.Entry? {
        guard isEntry(line) else { return nil }
        if JSONLine.isOne(line), let read = object ?? JSONLine.read(line), read.url != nil {
            var entry = entry(read, number: number)
            if columns { entry.columns = read.columns }
            return entry
        }
        let isCut = line.count > longestURL
        let hasControl = isCut || line[...].hasControl
        if !hasControl, let text = try? UTF8Span(validating: line.span) {
            return PrefetchJob.Entry(line: number, url: String(copying: text), isInvalid: !hasScheme(line[...]))
        }
        if !hasControl, hasScheme(line[...]), case let url = URLColumn.encoded(line), url.utf8.count <= longestURL {
            return PrefetchJob.Entry(line: number, url: url)
        }
        if !isCut, let (end, digest) = ImageLock.split(line) {
            guard var entry = entry(Array(line[..<end]), number: number) else { return nil }
            if !entry.isInvalid { entry.settings = URLSettings(digest: digest) }
            return entry
        }
        return PrefetchJob.Entry(line: number, url: escaped(line.prefix(200)) + (isCut ? "…" : ""), isInvalid: true)
    }

    private static func entry(_ object: JSONLine, number: Int) -> PrefetchJob.Entry {
        let text = Array((object.url ?? "").utf8)[...]
        let isURL = isWholeURL(text)
        do throws(WebImageError) {
            let settings = try object.settings()
            if isURL { return PrefetchJob.Entry(line: number, url: object.url ?? "", settings: settings) }
        } catch {
            // The list was refused for it when it was submitted, or has changed since.
        }
        return PrefetchJob.Entry(
            line: number, url: isURL ? object.url ?? "" : escaped(text.prefix(200)), isInvalid: true)
    }

    /// Whether it begins as a URL, and is neither too long nor has control characters.
    static func isWholeURL(_ text: ArraySlice<UInt8>) -> Bool {
        hasScheme(text) && text.count <= longestURL && !text.hasControl
    }

    /// RFC 3986 section 3.1, and the `//` that every fetchable URL has.
    private static func hasScheme(_ line: ArraySlice<UInt8>) -> Bool {
        guard let colon = line.prefix(20).firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
            colon + 2 < line.endIndex
        else { return false }
        let scheme = line[..<colon].allSatisfy { byte in
            switch byte | 0x20 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"): true
            default:
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "+")
                    || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
            }
        }
        return scheme && line[colon + 1] == UInt8(ascii: "/") && line[colon + 2] == UInt8(ascii: "/")
    }

    private static func escaped(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.reduce(into: "") { text, byte in
            if (0x20..<0x7F).contains(byte) {
                text.unicodeScalars.append(UnicodeScalar(byte))
            } else {
                let hex = String(byte, radix: 16)
                text += "\\x" + (hex.count == 1 ? "0" : "") + hex
            }
        }
    }
}

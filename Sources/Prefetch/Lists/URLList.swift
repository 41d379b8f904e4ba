internal import WebImage
internal import Glibc

/// A list of URLs in a text file: one URL or JSON object per line. Blank lines and lines that begin with `#` are skipped; a byte order
/// mark, CR LF and surrounding blanks are removed. An invalid line is an entry too: it counts, and ends as `invalidURL`. After a TAB a line
/// may have the required SHA-256 of the bytes (``ImageLock``).
package struct URLList: Sendable, Equatable {
    /// Bytes that a URL may have.
    static let longestURL = 65_536

    package var path: String
    /// Absolute paths of the files it was made of; none where it is the file itself.
    package var sources: [String] = []
    /// Number of entries, including invalid ones.
    package var total: Int
    /// Number of lines, including those without an entry.
    package var lines: Int
    /// Hex SHA-256 of the file's bytes.
    package var hash: String
    /// The folder that gets a copy while the list is fed; nil: none.
    private var copies: String?
    /// The union of options of single lines.
    package private(set) var lineOptions: WebImageOptions = []
    package private(set) var unknownMembers = UnknownMembers()

    /// Reads the whole list once, in constant memory: its total and hash.
    ///
    /// * `most`: it is read no further than to so many entries; its hash is that of no list then.
    /// * `origin`: what it was made of, where that is something else, and what that was called; it is named where there are no URLs in
    ///   it.
    /// - Throws: `notFound`, `unreadableList`; the latter also where none of the first 200 entries is a URL, with a hint that
    ///   names what the file looks like, and where a line is not of the format, asks for what there is not, or has a member whose name is
    ///   nearly one that asks something.
    package init(
        path: String, format: ListFormat = .auto, most: Int? = nil,
        origin: (name: String, input: ListImport?)? = nil
    ) throws(PrefetchError) {
        self.path = path
        var reader = try LineReader(path: path)
        let hasher = SHA256Hasher()
        var head: [UInt8] = []
        reader.observe = { bytes, range in
            bytes.withUnsafeBytes { hasher.update(UnsafeRawBufferPointer(rebasing: $0[range])) }
            if head.count < 4096 { head += bytes[range].prefix(4096 - head.count) }
        }
        var checks = ListChecks()
        while let line = try reader.next() {
            guard Self.isEntry(line) else { continue }
            if checks.total == most || checks.isNoList { break }
            try checks.add(line, number: reader.lineNumber, format)
        }
        if checks.total > 0 && !checks.hasURLs {
            throw ListGuess.error(path: origin?.name ?? path, head: origin?.input?.head ?? head)
        }
        (total, lineOptions, unknownMembers) = (checks.total, checks.lineOptions, checks.unknownMembers)
        lines = reader.lineNumber
        hash = hasher.finishedHex()
    }

    /// A list with known total and hash whose lines are all entries.
    package init(path: String, total: Int, hash: String) {
        (self.path, self.total, self.lines, self.hash) = (path, total, total, hash)
    }

    /// Its copy, where one is made.
    var copy: ListCopy? { copies.map { ListCopy(of: hash, in: $0) } }

    /// Has a copy made in a folder while the list is fed, unless it is in that folder itself.
    package mutating func keepCopy(in folder: String) { copies = path.hasPrefix(folder + "/") ? nil : folder }

    /// The path for other processes on this machine.
    package var absolutePath: String {
        PathText.resolved(path) ?? path
    }

    /// The file's name without folder and extension, reduced to the characters of a batch id.
    package var stem: String {
        let name = path.split(separator: "/").last.map(String.init) ?? "list"
        let base = name.firstIndex(of: ".").map { String(name[..<$0]) } ?? name
        let kept = base.utf8.map { byte in
            PrefetchQueue.isValidName(String(UnicodeScalar(byte))) ? Character(UnicodeScalar(byte)) : "-"
        }
        return kept.isEmpty ? "list" : String(kept.prefix(40))
    }

    /// Calls `body` with each entry from index `first` on, until it returns false.
    /// * `copy`: gets a copy of the file, where it is read to its end.
    /// - Throws: `unreadableList` if the file cannot be read (any more).
    package func forEach(
        from first: Int = 0, copy: ListCopy? = nil, _ body: (PrefetchJob.Entry) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        var reader = try LineReader(path: path)
        let writer = copy.flatMap { ListCopy.Writer($0) }
        if let writer {
            reader.observe = { bytes, range in
                bytes.withUnsafeBytes { writer.write(UnsafeRawBufferPointer(rebasing: $0[range])) }
            }
        }
        var index = 0
        while let line = try reader.next() {
            guard let entry = Self.entry(line, number: reader.lineNumber) else { continue }
            index += 1
            if index > first, try await !body(entry) { return }
        }
        writer?.finish()
    }

    /// Whether a line is an entry, good or bad: not blank and no comment.
    static func isEntry(_ line: [UInt8]) -> Bool { line.first.map { $0 != UInt8(ascii: "#") } ?? false }

    /// Nil for a blank line or a comment.
    static func entry(_ line: [UInt8], number: Int) -> PrefetchJob.Entry? {
        guard isEntry(line) else { return nil }
        if JSONLine.isOne(line), let read = JSONLine(line), read.url != nil {
            return entry(read, number: number)
        }
        let isCut = line.count > longestURL
        let hasControl = isCut || line.contains { $0 < 0x20 || $0 == 0x7F }
        if !hasControl, let text = try? UTF8Span(validating: line.span) {
            return PrefetchJob.Entry(line: number, url: String(copying: text), isInvalid: !hasScheme(line))
        }
        if !hasControl, hasScheme(line), case let url = URLColumn.encoded(line), url.utf8.count <= longestURL {
            return PrefetchJob.Entry(line: number, url: url)
        }
        if !isCut, let (end, digest) = ImageLock.split(line) {
            guard var entry = entry(Array(line[..<end]), number: number) else { return nil }
            if !entry.isInvalid { entry.settings = URLSettings(digest: digest) }
            return entry
        }
        return PrefetchJob.Entry(line: number, url: escaped(line.prefix(200)) + (isCut ? "…" : ""), isInvalid: true)
    }

    private static func entry(_ object: JSONLine, number: Int) -> PrefetchJob.Entry? {
        let text = Array((object.url ?? "").utf8)
        let isURL = hasScheme(text) && text.count <= longestURL && !text.contains { $0 < 0x20 || $0 == 0x7F }
        do throws(WebImageError) {
            let settings = try object.settings()
            if isURL {
                var entry = PrefetchJob.Entry(line: number, url: object.url ?? "", settings: settings)
                entry.columns = object.columns
                return entry
            }
        } catch {
            // The list was refused for it when it was submitted, or has changed since.
        }
        var entry = PrefetchJob.Entry(
            line: number, url: isURL ? object.url ?? "" : escaped(text.prefix(200)), isInvalid: true)
        entry.columns = object.columns
        return entry
    }

    /// RFC 3986 section 3.1, and the `//` that every fetchable URL has.
    private static func hasScheme(_ line: [UInt8]) -> Bool {
        guard let colon = line.prefix(20).firstIndex(of: UInt8(ascii: ":")), colon > 0, colon + 2 < line.count else {
            return false
        }
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

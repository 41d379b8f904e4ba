internal import WebImage

/// URLs that are read once, as a stream, by the rules of ``URLList``: from a file, from standard input, or from arguments of a command.
package enum URLLines {
    private static let groupCount = 1_000
    private static let groupBytes = 1 << 20

    /// Calls `body` with groups of entries, in order, in constant memory: up to 1,000 of them, or about 1 MiB.
    /// * `path`: a file, a pipe, or `-` for standard input.
    /// - Throws: errors of `body`; `notFound`, `unreadableList`.
    package static func forEachGroup(
        path: String, _ body: ([PrefetchJob.Entry]) async throws(PrefetchError) -> Void
    ) async throws(PrefetchError) {
        var reader = try LineReader(once: path)
        var group: [PrefetchJob.Entry] = []
        var bytes = 0
        while let line = try reader.next() {
            guard let entry = URLList.entry(line, number: reader.lineNumber) else { continue }
            group.append(entry)
            bytes += line.count
            guard group.count >= groupCount || bytes >= groupBytes else { continue }
            try await body(group)
            group.removeAll(keepingCapacity: true)
            bytes = 0
        }
        if !group.isEmpty { try await body(group) }
    }

    /// Entries of arguments, numbered from 1; lines that a list would skip are invalid here.
    package static func entries(_ words: [String]) -> [PrefetchJob.Entry] {
        zip(1..., words).map { number, word in
            URLList.entry(Array(word.utf8), number: number)
                ?? PrefetchJob.Entry(line: number, url: word, isInvalid: true)
        }
    }

    /// The URL of a word that is one, or a line of a list, and the settings of that line.
    package static func given(_ word: String) -> (url: String, settings: URLSettings?) {
        guard JSONLine.isOne(Array(word.utf8.prefix(1))), let entry = entries([word]).first, !entry.isInvalid else {
            return (word, nil)
        }
        return (entry.url, entry.settings)
    }

    /// Why an invalid entry is not a URL, and the URL that it probably is without its scheme.
    static func objection(to text: String) -> String {
        if let url = withScheme(text) { return "no scheme: did you mean \(url)?" }
        if text.utf8.first == UInt8(ascii: "{") { return "the line is not a JSON object with a URL" }
        if text.contains("://"), text.hasSuffix("…") { return "the URL is longer than \(URLList.longestURL >> 10) KiB" }
        return "the line is not a URL" + (text.contains("://") ? "" : ": it begins with neither http:// nor https://")
    }

    /// Only for a text that begins with a host: a name with a dot, or one with a port. Long texts, escaped bytes and credentials are not
    /// repeated in a detail.
    private static func withScheme(_ text: String) -> String? {
        let rest = text.trimmingPrefix("//")
        let authority = rest.utf8.prefix { ![UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains($0) }
        let parts = authority.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        let labels = parts.first?.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) ?? []
        guard text.utf8.count < 200, rest.utf8.count > authority.count, !authority.contains(UInt8(ascii: "@")),
            !text.utf8.contains(where: { $0 <= 0x20 || $0 == UInt8(ascii: "\\") }),
            !labels.contains(where: \.isEmpty),
            parts.count == 1 ? labels.count > 1 : parts.count == 2 && !parts[1].isEmpty
        else { return nil }
        let url = "https://\(rest)"
        return (try? RequestURL(url)) == nil ? nil : url
    }

    /// Whether a text, as a line, reads back as this URL.
    package static func isURL(_ text: String) -> Bool { isURL(Array(text.utf8)[...]) }

    /// The same of bytes.
    static func isURL(_ text: ArraySlice<UInt8>) -> Bool {
        let blank = UInt8(ascii: " ")
        return text.first != blank && text.last != blank && URLList.isWholeURL(text)
            && (try? UTF8Span(validating: text.span)) != nil
    }
}

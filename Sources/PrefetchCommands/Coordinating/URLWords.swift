internal import Prefetch

/// The URLs a command was given: words, or `-` for one a line on standard input.
enum URLWords {
    /// Runs `body` with each of them, in order; blank lines and comments of standard input are none.
    /// - Throws: what `body` throws; `unreadableList` where there is none of them and there has to be one.
    static func forEach(_ words: [String], _ empty: EmptyListOptions, _ body: (String) throws -> Void) throws {
        guard words == ["-"] else { return try words.forEach(body) }
        var count = 0
        while let line = readLine() {
            let url = trimmed(line)
            guard !url.isEmpty && !url.hasPrefix("#") else { continue }
            count += 1
            try body(url)
        }
        try empty.check(count, of: ListFile.name(of: "-"))
    }

    /// Without blanks around it, as the reader of lists takes a line.
    private static func trimmed(_ line: String) -> String {
        var text = line[...]
        while let first = text.first, first == " " || first == "\t" || first == "\r" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" || last == "\r" { text.removeLast() }
        return String(text)
    }
}

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
            guard !url.isEmpty && url.utf8.first != UInt8(ascii: "#") else { continue }
            count += 1
            try body(url)
        }
        try empty.check(count, of: ListFile.name(of: "-"))
    }

    /// Without blanks around it, as the reader of lists takes a line.
    private static func trimmed(_ line: String) -> String {
        func isBlank(_ byte: UInt8) -> Bool { " \t\r".utf8.contains(byte) }
        var bytes = line.utf8[...]
        while let first = bytes.first, isBlank(first) { bytes.removeFirst() }
        while let last = bytes.last, isBlank(last) { bytes.removeLast() }
        return String(Substring(bytes))
    }
}

/// The URLs a command was given: words, or `-` for one a line on standard input.
enum URLWords {
    /// Runs `body` with each of them, in order; blank lines and comments of standard input are none.
    static func forEach(_ words: [String], _ body: (String) throws -> Void) rethrows {
        guard words == ["-"] else { return try words.forEach(body) }
        while let line = readLine() {
            let url = trimmed(line)
            if !url.isEmpty && !url.hasPrefix("#") { try body(url) }
        }
    }

    /// Without blanks around it, as the reader of lists takes a line.
    private static func trimmed(_ line: String) -> String {
        var text = line[...]
        while let first = text.first, first == " " || first == "\t" || first == "\r" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" || last == "\r" { text.removeLast() }
        return String(text)
    }
}

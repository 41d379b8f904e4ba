/// Guesses the type of a file without URLs, for the error message.
enum ListGuess {
    static func error(path: String, head: [UInt8]) -> PrefetchError {
        // A suggested command cannot read a pipe again.
        let (what, hint) = guess(head, path: ListFile.isNamed(path) ? path : "FILE")
        return PrefetchError(
            .unreadableList, "\(path) looks like \(what): none of its first lines is a URL",
            hint: hint)
    }

    private static func guess(_ head: [UInt8], path: String) -> (what: String, hint: String) {
        if head.starts(with: "PAR1".utf8) {
            return ("a Parquet file", "it is read as a file: give its path, and not a pipe")
        }
        if head.starts(with: [0x1F, 0x8B]) {
            return ("gzip data", "unpack it first: zcat \(path) | prefetch-coord run -")
        }
        if head.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) {
            return ("zstd data", "unpack it first: zstdcat \(path) | prefetch-coord run -")
        }
        if head.starts(with: [0xFD, 0x37, 0x7A, 0x58, 0x5A]) {
            return ("xz data", "unpack it first: xzcat \(path) | prefetch-coord run -")
        }
        if head.starts(with: [0xFF, 0xFE]) || head.starts(with: [0xFE, 0xFF]) {
            return ("UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8 \(path) > urls.txt")
        }
        let text = String(decoding: head.prefix(2048), as: UTF8.self)
        let start = text.drop { $0.isWhitespace || $0 == "\u{FEFF}" }
        let lower = start.prefix(200).lowercased()
        if lower.hasPrefix("<!doctype html") || lower.hasPrefix("<html") {
            return ("an HTML page", "extract its links first; the list has one URL a line")
        }
        if lower.hasPrefix("<?xml") || lower.hasPrefix("<urlset") {
            return ("XML", "a sitemap has its URLs in <loc>; of anything else write them one a line")
        }
        if start.hasPrefix("[") { return ("a JSON array", "write one URL a line: jq -r '.[]' \(path) > urls.txt") }
        if start.hasPrefix("{") {
            let line = Array(start.utf8.prefix { $0 != UInt8(ascii: "\n") })
            let member = JSONLine.object(line)?.sorted { $0.key < $1.key }.first {
                URLLines.isURL($0.value.column.text)
            }?.key
            return (
                "JSON", "write one URL a line, for example: jq -r '.\(member ?? "url")' \(path) > urls.txt"
            )
        }
        let first = start.prefix { $0 != "\n" && $0 != "\r" && $0 != "\r\n" }
        for separator in [",", "\t", ";"] as [Character] where first.contains(separator) {
            let columns = first.split(separator: separator, omittingEmptySubsequences: false).map {
                $0.trimmingPrefix("\"")
            }
            let name = separator == "\t" ? "TAB-separated values" : "CSV"
            return (
                "\(name) with the columns \(columns.prefix(8).map { $0.filter { $0 != "\"" } }.joined(separator: ", "))",
                separator == ";"
                    ? "write the column of URLs alone, for example: cut -d';' -f1 \(path) | tail -n +2 > urls.txt"
                    : "each URL has its scheme; name their column: --input-format \(separator == "," ? "csv" : "tsv") --url-column NAME"
            )
        }
        return ("text without URLs", "the list has one URL a line, each with its scheme: https://example.org/a.jpg")
    }
}

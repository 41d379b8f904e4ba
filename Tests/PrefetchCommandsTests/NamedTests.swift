import Foundation

/// The tests there are, for pages that name them.
struct NamedTests {
    private let root: URL
    /// The text of every file of tests.
    private let files: [String]

    /// * `root`: the package's folder.
    init(root: URL) throws {
        self.root = root
        let folder = root.appending(path: "Tests")
        files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }.map {
            try String(contentsOf: folder.appending(path: $0), encoding: .utf8)
        }
    }

    /// The rows of the tables of a page whose last column has a name, as their cells.
    static func rows(of page: String, named: String) -> [[String]] {
        var rows: [[String]] = []
        var isProved = false
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("|") else {
                isProved = false
                continue
            }
            let cells = line.replacing("\\|", with: "/").split(separator: "|").map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            if cells.last == named {
                isProved = true
            } else if isProved && cells.first?.hasPrefix("---") == false {
                rows.append(cells)
            }
        }
        return rows
    }

    /// Whether a proof is there: `Suite "Begin of the name…"`, `Suite.function`, `ported downloader 04, 11`, `trace name` of Tests/Golden/traces,
    /// or `scripts/name` that can be run.
    func exists(_ proof: String) -> Bool {
        if let match = proof.wholeMatch(of: /`(scripts\/[a-z-]+)`/) {
            return FileManager.default.isExecutableFile(atPath: root.appending(path: String(match.1)).path)
        }
        if let match = proof.wholeMatch(
            of: /ported (downloader|manager|cache|prefetcher|coder|decoder|transformer) ([0-9]{2}(?:, [0-9]{2})*)/)
        {
            let suites = [
                "downloader": "SDWebImageDownloaderTests", "manager": "SDWebImageManagerTests",
                "cache": "SDImageCacheTests", "prefetcher": "SDWebImagePrefetcherTests", "coder": "SDImageCoderTests",
                "decoder": "SDWebImageDecoderTests", "transformer": "SDImageTransformerTests",
            ]
            let suite = suites[String(match.1)] ?? ""
            return match.2.split(separator: ", ").allSatisfy { number in
                let name = try? Regex("@Test\\(\\s*\"\(suite) ([0-9]{2} [A-Za-z]+, )*\(number) ")
                return name.map { name in files.contains { $0.contains(name) } } ?? false
            }
        }
        if let match = proof.wholeMatch(of: /trace ([A-Za-z0-9-]+)/) {
            return FileManager.default.fileExists(
                atPath: root.appending(path: "Tests/Golden/traces/\(match.1).txt").path)
        }
        if let match = proof.wholeMatch(of: /([A-Z][A-Za-z]+Tests)\.([a-z][A-Za-z]+)/) {
            return files.contains { Self.has(match.1, $0) && $0.contains("func \(match.2)(") }
        }
        guard let match = proof.wholeMatch(of: /([A-Z][A-Za-z]+Tests) "([^"…]+)(…?)"/) else { return false }
        let name = "\"\(match.2)" + (match.3.isEmpty ? "\"" : "")
        return files.contains { text in
            guard Self.has(match.1, text) else { return false }
            return text.matches(of: /@Test\(\s*("[^\n]*)/).contains { $0.1.hasPrefix(name) }
                || text.matches(of: /func `([^`]*)`/).contains { "\"\($0.1)\"".hasPrefix(name) }
        }
    }

    private static func has(_ suite: Substring, _ text: String) -> Bool {
        text.contains("struct \(suite) {") || text.contains("struct \(suite): ")
    }
}

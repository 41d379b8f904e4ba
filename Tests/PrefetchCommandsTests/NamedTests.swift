import Foundation
import Glibc

/// The tests there are, for pages that name them.
struct NamedTests {
    /// A file of tests. Its bytes are searched by the C library: without optimization that takes a fraction of the time.
    private struct File {
        let bytes: [UInt8]
        /// What its tests are called, in quotation marks or between backquotes, with all that follows in the line.
        let titles: [Substring]

        /// * `bytes`: with a zero at their end.
        init(_ bytes: [UInt8]) {
            self.bytes = bytes
            titles =
                Self.ends(of: "@Test(", in: bytes).compactMap { end in
                    let start = bytes[end...].firstIndex { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\n") } ?? end
                    let line = bytes[start...].prefix { $0 != UInt8(ascii: "\n") }
                    return line.first == UInt8(ascii: "\"") ? Substring(decoding: line.dropFirst(), as: UTF8.self) : nil
                }
                + Self.ends(of: "func `", in: bytes).map { end in
                    let name = bytes[end...].prefix { $0 != UInt8(ascii: "`") }
                    return Substring(decoding: name, as: UTF8.self) + "\""
                }
        }

        func contains(_ text: String) -> Bool { !Self.ends(of: text, in: bytes, most: 1).isEmpty }

        func has(_ suite: Substring) -> Bool { contains("struct \(suite) {") || contains("struct \(suite): ") }

        /// Where the places of a text end.
        private static func ends(of text: String, in bytes: [UInt8], most: Int = .max) -> [Int] {
            bytes.withUnsafeBytes { bytes in
                guard let first = bytes.baseAddress?.assumingMemoryBound(to: CChar.self) else { return [] }
                var ends: [Int] = []
                while ends.count < most, let found = strstr(first + (ends.last ?? 0), text) {
                    ends.append(UnsafePointer(found) - first + text.utf8.count)
                }
                return ends
            }
        }
    }

    private let root: URL
    private let files: [File]

    /// * `root`: the package's folder.
    init(root: URL) throws {
        self.root = root
        let folder = root.appending(path: "Tests")
        files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }.map {
            File(Array(try Data(contentsOf: folder.appending(path: $0))) + [0])
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

    func hasSuite(_ name: Substring) -> Bool { files.contains { $0.has(name) } }

    /// Whether a test has that function, or a suite a case of that name.
    func hasCase(_ name: Substring, of suite: Substring) -> Bool {
        files.contains { $0.contains("func \(name)(") || $0.has(suite) && $0.contains("\"\(name)\"") }
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
            let suite = (suites[String(match.1)] ?? "") + " "
            let titles = files.flatMap { $0.titles.filter { $0.hasPrefix(suite) }.map { $0.dropFirst(suite.count) } }
            return match.2.split(separator: ", ").allSatisfy { number in
                let name = try? Regex("([0-9]{2} [A-Za-z]+, )*\(number) ")
                return name.map { name in titles.contains { $0.starts(with: name) } } ?? false
            }
        }
        if let match = proof.wholeMatch(of: /trace ([A-Za-z0-9-]+)/) {
            return FileManager.default.fileExists(
                atPath: root.appending(path: "Tests/Golden/traces/\(match.1).txt").path)
        }
        if let match = proof.wholeMatch(of: /([A-Z][A-Za-z0-9]+Tests)\.([a-z][A-Za-z0-9]+)/) {
            return files.contains { $0.has(match.1) && $0.contains("func \(match.2)(") }
        }
        guard let match = proof.wholeMatch(of: /([A-Z][A-Za-z0-9]+Tests) "([^"…]+)(…?)"/) else { return false }
        let name = match.2 + (match.3.isEmpty ? "\"" : "")
        return files.contains { file in file.has(match.1) && file.titles.contains { $0.hasPrefix(name) } }
    }
}

import ArgumentParser
import Foundation
import Testing

@testable import PrefetchCommands

/// docs/OPTIONS.md against the tests and the commands it speaks of.
@Suite("The table of options", .timeLimit(.minutes(1)))
struct OptionTableTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private let page: String
    /// The text of every file of tests.
    private let tests: [String]

    init() throws {
        page = try String(contentsOf: Self.root.appending(path: "docs/OPTIONS.md"), encoding: .utf8)
        let folder = Self.root.appending(path: "Tests")
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
        tests = try files.filter { $0.hasSuffix(".swift") }.map {
            try String(contentsOf: folder.appending(path: $0), encoding: .utf8)
        }
    }

    /// The rows of the tables whose last column names tests, as their cells.
    private var rows: [[String]] {
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
            if cells.last == "proved by" {
                isProved = true
            } else if isProved && cells.first?.hasPrefix("---") == false {
                rows.append(cells)
            }
        }
        return rows
    }

    /// Whether a proof is there: `Suite "Begin of the name…"`, `Suite.function` or `ported downloader 04, 11`.
    private func exists(_ proof: String) -> Bool {
        if let match = proof.wholeMatch(of: /ported (downloader|manager|cache) ([0-9]{2}(?:, [0-9]{2})*)/) {
            let suites = [
                "downloader": "SDWebImageDownloaderTests", "manager": "SDWebImageManagerTests",
                "cache": "SDImageCacheTests",
            ]
            let suite = suites[String(match.1)] ?? ""
            return match.2.split(separator: ", ").allSatisfy { number in
                tests.contains { $0.contains("@Test(\"\(suite) \(number) ") }
            }
        }
        if let match = proof.wholeMatch(of: /([A-Z][A-Za-z]+Tests)\.([a-z][A-Za-z]+)/) {
            return tests.contains { $0.contains("struct \(match.1) {") && $0.contains("func \(match.2)(") }
        }
        guard let match = proof.wholeMatch(of: /([A-Z][A-Za-z]+Tests) "([^"…]+)(…?)"/) else { return false }
        let name = "\"\(match.2)" + (match.3.isEmpty ? "\"" : "")
        return tests.contains { text in
            guard text.contains("struct \(match.1) {") else { return false }
            return text.matches(of: /@Test\(\s*("[^\n]*)/).contains { $0.1.hasPrefix(name) }
        }
    }

    @Test("Every test that the page names is there")
    func proofs() {
        let rows = self.rows
        // Fewer would mean that they are not found any more.
        #expect(rows.count > 70)
        for row in rows {
            for proof in row[row.count - 1].components(separatedBy: "; ") {
                #expect(exists(proof), "\(row[0]): there is no test as \(proof)")
            }
        }
        // What this test holds is not held by any text.
        for wrong in ["EngineTests \"No such…\"", "NoSuchTests \"--refresh…\"", "ported manager 99", "the same", ""] {
            #expect(!exists(wrong))
        }
    }

    /// The options of a command's help.
    private func options(_ command: any ParsableCommand.Type) -> Set<String> {
        let listed = command.helpMessage(columns: 80).matches(of: /(?m)^  (?:-[A-Za-z0-9], )?(--[a-z0-9-]+)/)
        return Set(listed.map { String($0.1) })
    }

    /// What is about Redis, the queue, a batch as a whole, or what is printed.
    private static let others: Set<String> = [
        "--redis", "--cache", "--redis-password-file", "--redis-cacert", "--redis-cert", "--redis-key", "--redis-sni",
        "--queue", "--name", "--order", "--priority", "--window", "--job-size", "--keep", "--keep-details",
        "--deadline", "--finish-at", "--open", "--wait", "--resume", "--slot", "--fail-over", "--json", "--quiet",
        "--version", "--help", "--workers", "--manifest", "--out", "--history", "--burst", "--progress", "--color",
        "--dry-run", "--log-format",
    ]

    @Test("Every option that is about fetching is on the page, and the page has none that there is not")
    func complete() {
        let all = [WorkerCommand.self, RunCommand.self, SubmitCommand.self] as [any ParsableCommand.Type]
        let known = all.reduce(into: Set<String>()) { $0.formUnion(options($1)) }
        #expect(known.count > 60)
        let named = Set(page.matches(of: /`(--[a-z0-9-]+)/).map { String($0.1) })
        #expect(
            known.subtracting(Self.others).subtracting(named) == [],
            "docs/OPTIONS.md has to say what they do and which test proves it")
        #expect(named.subtracting(known) == [])
    }
}

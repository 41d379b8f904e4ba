import ArgumentParser
import Foundation
import Testing

@testable import PrefetchCommands

/// docs/OPTIONS.md and docs/SDWEBIMAGE.md against the tests and the commands they speak of.
@Suite("The tables of options and of SDWebImage", .timeLimit(.minutes(5)))
struct OptionTableTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func page(_ name: String) throws -> String {
        try String(contentsOf: Self.root.appending(path: "docs/\(name)"), encoding: .utf8)
    }

    @Test("Every test that the page names is there", arguments: ["OPTIONS.md", "SDWEBIMAGE.md"])
    func proofs(name: String) throws {
        let tests = try NamedTests(root: Self.root)
        let rows = NamedTests.rows(of: try page(name), named: "proved by")
        // Fewer would mean that they are not found any more.
        #expect(rows.count > 70)
        for row in rows {
            for proof in row[row.count - 1].components(separatedBy: "; ") {
                // By itself: what the macro would print of it is every test there is.
                let isThere = tests.exists(proof)
                #expect(isThere, "\(row[0]): there is no test as \(proof)")
            }
        }
        // What this test holds is not held by any text.
        for wrong in ["EngineTests \"No such…\"", "NoSuchTests \"--refresh…\"", "ported manager 99", "the same", ""] {
            let isThere = tests.exists(wrong)
            #expect(!isThere, "\(wrong)")
        }
    }

    @Test("Every golden trace is named by the page")
    func traces() throws {
        let page = try self.page("SDWEBIMAGE.md")
        let folder = Self.root.appending(path: "Tests/Golden/traces").path
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).map { String($0.dropLast(4)) }
        #expect(names.count > 25)
        for name in names {
            let isNamed = page.contains("trace \(name)")
            #expect(isNamed, "\(name)")
        }
    }

    /// The options of a command's help.
    private func options(_ command: any ParsableCommand.Type) -> Set<String> {
        let listed = command.helpMessage(columns: 80).matches(of: /(?m)^  (?:-[A-Za-z0-9], )?(--[a-z0-9-]+)/)
        return Set(listed.map { String($0.1) })
    }

    /// What is about Redis, the queue, a batch as a whole, or what is printed.
    private static let others: Set<String> = [
        "--redis", "--cache", "--state", "--redis-password-file", "--redis-ca-file", "--redis-cert",
        "--redis-key",
        "--redis-sni",
        "--queue", "--name", "--order", "--priority", "--window", "--job-size", "--keep",
        "--deadline", "--finish-at", "--max-failures", "--verbose", "--wait",
        "--resume",
        "--slot", "--allow-failures", "--json", "--quiet",
        "--version", "--help", "--workers", "--manifest", "--overwrite", "--out", "--format",
        "--per-shard", "--caption-column", "--image-member", "--sidecar", "--add-columns",
        "--burst", "--progress",
        "--dry-run", "--limit", "--log-format", "--show-secrets",
    ]

    @Test("Every option that is about fetching is on the page, and the page has none that there is not")
    func complete() throws {
        let page = try self.page("OPTIONS.md")
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

import Foundation
import Glibc
import Origin
import TestSupport
import Testing

/// `--limit` and `--dry-run`, as a user runs them.
@Suite("A part of a list, and what it would take", .timeLimit(.minutes(5)))
struct DryRunTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer
    private var cache: String { folder.path("cache") }

    init() throws {
        origin = try OriginServer()
        for index in 0..<5 {
            origin.route(
                "/\(index)", OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 16, height: 12)))
        }
    }

    private func json(_ child: ChildProcess) throws -> [String: Any] {
        try #require(JSONSerialization.jsonObject(with: Data(child.stdout.utf8)) as? [String: Any])
    }

    private let net = ["--allow-net", "127.0.0.0/8", "-q", "-n", "1", "--json"]

    @Test("--limit is a batch of its own; the whole list then finds its images as hits")
    func limit() async throws {
        let file = list(["# first"] + (0..<5).map { origin.url("/\($0)") })
        let at = ["--cache", cache]
        let first = try json(await ran(["run", file, "--limit", "2"] + at + net))
        #expect(first["total"] as? Int == 2 && origin.requestCount() == 2, "\(first)")
        // Its list is there as long as its cache.
        let lines = try await ran(["export", "--format", "jsonl"] + at)
        #expect(lines.stdout.split(separator: "\n").count == 2)
        let all = try json(await ran(["run", file] + at + net))
        #expect(all["total"] as? Int == 5 && all["id"] as? String != first["id"] as? String, "\(all)")
        #expect(origin.requestCount() == 5)
        // A limit that cuts nothing is the list itself.
        let whole = try json(await ran(["run", file, "--limit", "9"] + at + net))
        #expect(whole["total"] as? Int == 5 && origin.requestCount() == 5)
        // A table, and a list that cannot be used.
        let table = list(["url", origin.url("/0"), origin.url("/1")], "t.csv")
        #expect(try json(await ran(["run", table, "--limit", "1"] + at + net))["total"] as? Int == 1)
        _ = try await ran(
            ["run", list(["nothing"], "bad.txt"), "--limit", "1", "--cache", folder.path("none")], exits: 65)
        #expect(access(folder.path("none"), F_OK) != 0)
        _ = try await ran(["run", file, "--limit", "0"], exits: 64)
    }

    @Test("--dry-run counts, fetches nothing and leaves nothing behind", arguments: ["run", "submit"])
    func dryRun(command: String) async throws {
        let urls = (0..<5).map { origin.url("/\($0)") }
        let file = list(["# first"] + urls + [urls[0], "nothing", "http://h.example/a.png"])
        let table = list(["url"] + urls, "t.csv")
        let bad = list(["nothing"], "bad.txt")
        let before = folder.contents()
        let words = [command, file, "--dry-run", "--cache", cache]
        let dry = try await ran(words)
        #expect(dry.stdout.contains("urls.txt: 9 lines, 7 URLs, 1 invalid\n"), "\(dry.stdout)")
        #expect(dry.stdout.contains("  duplicates    1\n  in the cache  0\n  to fetch      6\n"), "\(dry.stdout)")
        #expect(
            dry.stdout.contains("\nHOST       URLS  SHARE\n127.0.0.1     6  85.7%\nh.example     1  14.3%\n"),
            "\(dry.stdout)")
        let ofTable = try json(await ran([command, table, "--dry-run", "--cache", cache, "--json"]))
        #expect(ofTable["urls"] as? Int == 5)
        _ = try await ran([command, bad, "--dry-run", "--cache", cache], exits: 65)
        #expect(folder.contents() == before && origin.requestCount() == 0)
        // What is there already.
        _ = try await ran(["run", file, "--limit", "2", "--cache", cache] + net)
        let counts = try json(await ran(words + ["--json"]))
        #expect(counts["cached"] as? Int == 2 && counts["to_fetch"] as? Int == 4)
        let head = try json(await ran(words + ["--json", "--limit", "3"]))
        #expect(head["urls"] as? Int == 3 && head["to_fetch"] as? Int == 1)
        let fresh = try json(await ran(words + ["--json", "--refresh-cached"]))
        #expect(fresh["to_fetch"] as? Int == 6)
        #expect(origin.requestCount() == 2)
    }
}

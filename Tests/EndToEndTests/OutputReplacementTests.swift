import Glibc
import Origin
import TestSupport
import Testing

/// Files of results in the place of other files.
@Suite("Files that results replace, by the programs", .timeLimit(.minutes(5)))
struct OutputReplacementTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer
    private var cache: String { folder.path("cache") }

    init() throws {
        origin = try OriginServer()
        for index in 0..<3 {
            origin.route(
                "/\(index).png", OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 16, height: 12)))
        }
    }

    private func list(_ indices: Range<Int>, _ name: String) -> String {
        write(indices.map { origin.url("/\($0).png") + "\n" }.joined(), name)
    }

    @discardableResult
    private func ran(_ words: [String], exits code: Int32 = 0, says text: String = "") async throws -> ChildProcess {
        let child = try await ended(words + ["--cache", cache])
        #expect(await child.wait() == .exited(code), "\(words): \(child.stderr)")
        if !text.isEmpty { #expect(child.stderr.contains(text), "\(words): \(child.stderr)") }
        return child
    }

    private func run(_ words: [String], exits code: Int32 = 0, says text: String = "") async throws {
        try await ran(["run", "-n", "1", "-q", "--allow-net", "127.0.0.0/8"] + words, exits: code, says: text)
    }

    @Test("run writes no manifest over its list, by no name of it, and replaces other files on request only")
    func manifests() async throws {
        let (three, two) = (list(0..<3, "three.txt"), list(0..<2, "two.txt"))
        let text = folder.read("three.txt")
        #expect(symlink("three.txt", folder.path("link")) == 0)
        #expect(link(three, folder.path("hard")) == 0)
        let table = write("url,n\n\(origin.url("/0.png")),1\n", "t.csv")
        for path in [three, folder.path("link"), folder.path("hard")] {
            for more in [[], ["--overwrite"]] {
                try await run([three, "--manifest", path] + more, exits: 73, says: "is the list")
            }
        }
        // The list that the table becomes is another file.
        try await run([table, "--manifest", table, "--overwrite"], exits: 73, says: "is the list")
        let notes = write("notes\n", "notes.txt")
        try await run([three, "--manifest", notes], exits: 73, says: "--overwrite")
        #expect(folder.read("three.txt") == text && folder.read("notes.txt") == Array("notes\n".utf8))
        #expect(origin.requestCount() == 0)

        let manifest = folder.path("m.jsonl")
        try await run([three, "--manifest", manifest])
        try await run([three, "--manifest", manifest])
        try await run([two, "--manifest", manifest], exits: 73, says: "is not a manifest of this batch")
        try await run([two, "--manifest", manifest, "--overwrite"])
        #expect(folder.read("m.jsonl")?.count { $0 == UInt8(ascii: "\n") } == 2)
        #expect(origin.requestCount() == 3)
    }

    @Test("export replaces what it wrote of the same batch, and no list")
    func exports() async throws {
        let table = write("url,n\n\(origin.url("/0.png")),1\n\(origin.url("/1.png")),2\n", "t.csv")
        try await run([table])
        let text = folder.read("t.csv")
        for words in [
            ["export", "--format", "csv"], ["export", "--format", "failed"], ["export", "--format", "html"],
        ] {
            for more in [[], ["--overwrite"]] {
                try await ran(words + ["-o", table] + more, exits: 73, says: "is the list")
            }
        }
        #expect(folder.read("t.csv") == text)
        for (name, words) in [
            ("m.csv", ["export", "--format", "csv"]), ("m.jsonl", ["export", "--format", "jsonl"]),
            ("r.html", ["export", "--format", "html"]),
        ] {
            for _ in 0..<2 { try await ran(words + ["-o", folder.path(name)]) }
        }
        // A manifest of one form takes the place of another; a list of failures is no manifest.
        try await ran(["export", "--format", "tsv", "-o", folder.path("m.csv")])
        try await ran(["export", "--format", "lock", "-o", folder.path("lock")])
        try await ran(["export", "--format", "lock", "-o", folder.path("lock")], exits: 73, says: "--overwrite")
        try await ran(["export", "--format", "lock", "-o", folder.path("lock"), "--overwrite"])
        try await run([list(0..<1, "one.txt")])
        for (name, words) in [("m.csv", ["export", "--format", "csv"]), ("r.html", ["export", "--format", "html"])] {
            let before = folder.read(name)
            try await ran(words + ["-o", folder.path(name)], exits: 73, says: "of this batch")
            #expect(folder.read(name) == before)
            try await ran(words + ["-o", folder.path(name), "--overwrite"])
            #expect(folder.read(name) != before)
        }
    }
}

import Glibc
import Origin
import TestSupport
import Testing

@Suite("Several lists, by the programs", .timeLimit(.minutes(5)))
struct SeveralListsTests {
    private let folder = TemporaryDirectory()
    private let origin: OriginServer
    private var cache: String { folder.path("cache") }

    init() throws {
        origin = try OriginServer()
        for index in 0..<4 {
            origin.route(
                "/\(index).png", OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 16, height: 12)))
        }
        mkdir(folder.path("lists"), 0o777)
        folder.write(Array("\(url(0))\n\(url(1))".utf8), to: "a.txt")
        folder.write(Array("n,url\n1,\(url(2))\n".utf8), to: "lists/b.csv")
        folder.write(Array("\(url(3))\n".utf8), to: "lists/c.txt")
    }

    private func url(_ index: Int) -> String { origin.url("/\(index).png") }

    private func ran(_ command: String, exits code: Int32 = 0, says text: String = "") async throws -> ChildProcess {
        let child = try await ChildProcess(
            "/usr/bin/env",
            ["bash", "-c", "cd '\(folder.path)' && '\(builtProduct("prefetch-coord"))' \(command)"])
        #expect(await child.wait() == .exited(code), "\(command): \(child.stderr)")
        if !text.isEmpty { #expect(child.stderr.contains(text), "\(command): \(child.stderr)") }
        return child
    }

    private let run = "run -q -n 1 --allow-net 127.0.0.0/8 --cache cache"

    @Test("Files, folders and patterns are one list in their order, which runs, continues and is never overwritten")
    func order() async throws {
        let dry = try await ran("run a.txt lists --dry-run --json --cache cache")
        #expect(dry.stdout.contains(#""list":"a.txt and 2 more lists","lines":5,"urls":4"#))
        let first = try await ran("\(run) a.txt lists 'lists/b*' --manifest m.jsonl --json")
        #expect(first.stdout.contains(#""id":"a-"#) && first.stdout.contains(#""total":5"#))
        let rows = String(decoding: folder.read("m.jsonl") ?? [], as: UTF8.self).split(separator: "\n")
        #expect(rows.count == 5)
        for (row, (line, index)) in zip(rows, zip([1, 2, 4, 5, 7], [0, 1, 2, 3, 2])) {
            #expect(row.hasPrefix(#"{"line":\#(line),"url":"\#(url(index))","#), "\(row)")
        }
        // The same list again: a manifest of it is replaced, none of its files is.
        _ = try await ran("\(run) a.txt lists 'lists/b*' --manifest m.jsonl")
        #expect(origin.requestCount() == 4)
        for name in ["a.txt", "lists/b.csv", "lists/c.txt"] {
            _ = try await ran("\(run) a.txt lists --manifest \(name) --overwrite", exits: 73, says: "is the list")
            _ = try await ran(
                "export --cache cache --format lock -o \(name) --overwrite", exits: 73, says: "is the list")
        }
        _ = try await ran("\(run) - lists < a.txt")
        #expect(origin.requestCount() == 4)
    }

    @Test("What is no list is named, before a cache is made")
    func errors() async throws {
        mkdir(folder.path("none"), 0o777)
        for (words, code, text) in [
            ("none", 66, "the folder none has no files"), ("a.txt 'x*.txt'", 66, "no file matches x*.txt"),
            ("a.txt missing.txt", 66, "cannot read missing.txt"),
        ] {
            _ = try await ran("\(run) \(words)", exits: Int32(code), says: text)
            #expect(!folder.contents().contains { $0.hasPrefix("cache") })
        }
        folder.write(Array("{\"url\":\"\(url(0))\",\"sha265\":\"\"}\n".utf8), to: "bad.jsonl")
        _ = try await ran("\(run) a.txt bad.jsonl", exits: 65, says: "bad.jsonl: line 1: there is no member 'sha265'")
        folder.write([], to: "empty.txt")
        _ = try await ran("\(run) a.txt empty.txt", exits: 65, says: "empty.txt has no URL")
    }

    @Test("A list whose name is not UTF-8 runs, and is found again")
    func anyName() async throws {
        _ = try await ran("\(run) a.txt; mv a.txt $'caf\\xe9.txt'")
        let run = try await ran("\(run) $'caf\\xe9.txt' --json")
        #expect(run.stdout.contains(#""total":2"#) && run.stdout.contains(#"caf\\xE9.txt"#))
        let export = try await ran("export --cache cache --format jsonl")
        #expect(export.stdout.split(separator: "\n").count == 2)
        _ = try await ran("run --cache cache $'no\\xe9.txt'", exits: 66, says: "cannot read no\\xE9.txt")
    }
}

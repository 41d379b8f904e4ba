import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("Shards of a run that goes on", .timeLimit(.minutes(5)))
struct RunningShardsTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer

    init() throws {
        origin = try OriginServer()
        for index in 0..<60 {
            let body = GeneratedImage.jpeg(seed: UInt64(index % 7), width: 24, height: 8)
            origin.route("/\(index).jpg", OriginResponse(body: body))
        }
    }

    private func line(_ index: Int, _ more: String = "") -> String {
        "{\"url\":\"\(origin.url("/\(index).jpg"))\",\"caption\":\"image \(index)\"\(more)}"
    }

    private func run(_ files: [String], _ out: String, _ more: [String] = []) -> [String] {
        ["run"] + files
            + [
                "--cache", folder.path("cache"), "--allow-net", "127.0.0.0/8", "-n", "2", "--format", "webdataset",
                "--per-shard", "10", "--sidecar", "jsonl", "--out", folder.path(out),
            ] + more
    }

    private func export(_ out: String) -> [String] {
        [
            "export", "--cache", folder.path("cache"), "--format", "webdataset", "--per-shard", "10", "--sidecar",
            "jsonl", "--out", folder.path(out),
        ]
    }

    private func hold(_ path: String) {
        var held = OriginResponse(body: GeneratedImage.jpeg(seed: 1, width: 24, height: 8))
        held.fault = .stallBeforeHeader
        origin.route(path, held)
    }

    private func names(_ out: String) -> [String] {
        folder.contents().filter { $0.hasPrefix("\(out)/") && $0 != "\(out)/" }.map {
            String($0.dropFirst(out.count + 1))
        }
    }

    /// Until these shards are whole and none is being written.
    private func waitForShards(_ numbers: some Sequence<Int>, of run: ChildProcess) async throws {
        let paths = numbers.map { "out/0000\($0)_stats.json" }
        try await until {
            !run.isRunning
                || paths.allSatisfy { folder.read($0) != nil } && names("out").allSatisfy { !$0.hasPrefix(".") }
        }
        #expect(run.isRunning, "\(run)")
    }

    private func text(_ path: String) -> String { String(decoding: folder.read(path) ?? [], as: UTF8.self) }

    @Test("A shard is written as soon as its last line has ended, and a run that is killed goes on with the rest")
    func during() async throws {
        hold("/3.jpg")
        let file = list((0..<60).map { line($0, "") })
        let words = run([file], "out", ["--name", "b"])
        let first = try await coord(words)
        try await waitForShards(1...5, of: first)
        #expect(names("out").allSatisfy { !$0.contains("00000") } && names("out").count == 15)
        let early = folder.read("out/00004.tar")
        try await until {
            try await ran(["status", "b", "--cache", folder.path("cache")]).stdout.contains(
                "), 1 waits for its last lines")
        }
        first.signal(SIGKILL)
        #expect(await first.wait() == .signalled(SIGKILL))
        origin.release("/3.jpg")
        // A writer of other stats was killed between the names of a shard.
        let (whole, stats) = (folder.read("out/00002.tar"), text("out/00002_stats.json"))
        folder.write([1, 2, 3], to: "out/00002.tar")
        folder.write(Array(stats.replacing(": 10", with: ": 9").utf8), to: "out/.00002_stats.json")
        try await ran(words, says: "60 images in 6 shards, 2 of them new; captions from the column caption")
        #expect(names("out").count == 18 && folder.read("out/00004.tar") == early)
        #expect(folder.read("out/00002.tar") == whole)
        let ended = try await ran(["status", "b", "--json", "--cache", folder.path("cache")])
        #expect(ended.stdout.contains("\"written\":6") && ended.stdout.contains("\"open\":0"), "\(ended.stdout)")
        try await ran(export("again"), says: "60 images in 6 shards, 6 of them new")
        for name in names("out") where !name.hasSuffix("_stats.json") {
            #expect(folder.read("out/\(name)") == folder.read("again/\(name)"), "\(name)")
        }
        try await ran(export("out"), says: "6 shards, 0 of them new")
    }

    @Test("Of two runs of a list one writes a shard; the other finds it there")
    func together() async throws {
        for path in ["/3.jpg", "/55.jpg"] { hold(path) }
        let words = run([list((0..<60).map { line($0) })], "out", ["--name", "b"])
        let first = try await coord(words)
        try await waitForShards(1...4, of: first)
        let second = try await coord(words)
        // It follows the same batch.
        try await until {
            let known = try await ran(["status", "--json", "--cache", folder.path("cache")]).stdout
            return !second.isRunning || known.matches(of: /"state":"running","host"/).count == 4
        }
        for path in ["/3.jpg", "/55.jpg"] { origin.release(path) }
        for child in [first, second] { #expect(await child.wait() == .exited(0), "\(child.stderr)") }
        let texts = [first, second].map(\.stderr)
        let new = texts.compactMap {
            $0.firstMatch(of: /60 images in 6 shards, (\d) of them new/).flatMap { Int($0.1) }
        }
        #expect(new.count == 2 && new.reduce(0, +) == 6 && new[0] >= 4, "\(texts)")
        #expect(names("out").count == 18)
        let ended = try await ran(["status", "b", "--json", "--cache", folder.path("cache")])
        #expect(ended.stdout.contains("\"written\":6") && ended.stdout.contains("\"open\":0"), "\(ended.stdout)")
        try await ran(export("again"), says: "60 images in 6 shards, 6 of them new")
        for name in names("out") where !name.hasSuffix("_stats.json") {
            #expect(folder.read("out/\(name)") == folder.read("again/\(name)"), "\(name)")
        }
    }

    @Test("Of several files a shard is known at the end of each, and columns that come late are in all tables")
    func files() async throws {
        // Of each other shard a line, so that the first one is written before them.
        for path in ["/14.jpg", "/19.jpg", "/29.jpg"] { hold(path) }
        let files = [
            list((0..<15).map { line($0, $0 == 14 ? ",\"late\":1.5" : "") }, "a.jsonl"),
            list((15..<30).map { line($0, ",\"late\":\($0)") }, "b.jsonl"),
        ]
        let child = try await coord(run(files, "out", ["--keep-columns", "late"]))
        try await waitForShards([0], of: child)
        #expect(!text("out/00000.jsonl").contains("late"))
        for path in ["/14.jpg", "/29.jpg"] { origin.release(path) }
        try await waitForShards([0, 1, 3], of: child)
        #expect(text("out/00003.jsonl").contains("\"late\":29"))
        #expect(text("out/00001.jsonl").split(separator: "\n").count == 5)
        origin.release("/19.jpg")
        #expect(await child.wait() == .exited(0), "\(child.stderr)")
        let lines = (0..<4).flatMap { text("out/0000\($0).jsonl").split(separator: "\n") }
        #expect(lines.count == 30 && lines.allSatisfy { $0.hasPrefix("{\"late\":") })
        #expect(names("out").count == 12)
        try await ran(export("out"), says: "30 images in 4 shards, 0 of them new")
    }

    @Test("Another run of the list adds what it fetches; a shard of a writer that was killed is completed")
    func interrupted() async throws {
        let file = list((0..<20).map { line($0) })
        origin.route("/19.jpg", OriginResponse(status: 404))
        try await ran(run([file], "out"), exits: 3, says: "19 images in 2 shards, 2 of them new")
        let first = folder.read("out/00000.tar")
        origin.route("/19.jpg", OriginResponse(body: GeneratedImage.jpeg(seed: 5, width: 24, height: 8)))
        try await ran(run([file], "out", ["--retry-failed"]), says: "20 images in 2 shards, 1 of them new")
        #expect(folder.read("out/00000.tar") == first)
        let whole = folder.read("out/00001.tar")
        func tear() throws {
            folder.write([1, 2, 3], to: "out/00001.tar")
            try #require(rename(folder.path("out/00001_stats.json"), folder.path("out/.00001_stats.json")) == 0)
        }
        try tear()
        try await ran(export("out"), says: "20 images in 2 shards, 1 of them new")
        #expect(folder.read("out/00001.tar") == whole && names("out").count == 6)
        // Killed between the last two names.
        let stats = folder.read("out/00001_stats.json") ?? []
        for command in [export("out"), run([file], "out")] {
            folder.write(stats, to: "out/.00001_stats.json")
            try await ran(command, says: "20 images in 2 shards, 0 of them new")
            #expect(folder.read("out/00001.tar") == whole && names("out").count == 6)
        }
        try tear()
        unlink(folder.path("out/.00001_stats.json"))
        try await ran(export("out"), exits: 73, says: "00001.tar is there already")
        #expect(folder.read("out/00001.tar") == [1, 2, 3])
    }

    @Test("A name that was used before makes no list another one: its shards stay as they are")
    func sameName() async throws {
        let files = [list((0..<20).map { line($0) }, "a.jsonl"), list((20..<40).map { line($0) }, "b.jsonl")]
        try await ran(run([files[0]], "out", ["-q", "--name", "x"]))
        let before = names("out").map { folder.read("out/\($0)") }
        try await ran(["rm", "x", "--yes", "--cache", folder.path("cache")])
        try await ran(run([files[1]], "out", ["--name", "x"]), exits: 74, says: "_stats.json is there already")
        #expect(names("out").map { folder.read("out/\($0)") } == before && before.count == 6)
        // The same URLs with other captions are other lines.
        let text = text("a.jsonl").replacing("image 3", with: "picture 3")
        try await ran(run([write(text, "c.jsonl")], "out"), exits: 74, says: "00000_stats.json is there already")
        #expect(names("out").map { folder.read("out/\($0)") } == before)
    }
}

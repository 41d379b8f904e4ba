import Foundation
import Origin
import TestSupport
import Testing

/// Shards that lack images, completed by the built program.
@Suite("Shards that are healed", .timeLimit(.minutes(5)))
struct HealTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer

    init() throws {
        origin = try OriginServer()
        for index in 0..<25 { origin.route("/\(index).jpg", OriginResponse(body: image(index))) }
    }

    private func image(_ index: Int) -> [UInt8] {
        GeneratedImage.jpeg(seed: UInt64(index), width: 60 + index, height: 40)
    }

    private func heal(_ more: [String] = []) -> [String] {
        ["heal", folder.path("out"), "--allow-net", "127.0.0.0/8", "-n", "1"] + more
    }

    /// Shards of ten lines, of which some have no image; those of a later run by others do not say whose they are.
    private func write(isForeign: Bool, _ more: [String] = []) async throws {
        for index in [3, 12, 24] { origin.route("/\(index).jpg", OriginResponse(status: 500)) }
        let file = list(
            (0..<25).map { "{\"url\":\"\(origin.url("/\($0).jpg"))\",\"caption\":\"c \($0)\",\"score\":0.\($0)}" })
        try await ran(
            [
                "run", file, "--allow-net", "127.0.0.0/8", "-n", "1", "--tries", "1", "--format", "webdataset",
                "--per-shard", "10", "--sidecar", "jsonl", "--keep-columns", "score", "--out", folder.path("out"),
                "--cache", folder.path("cache"),
            ] + more, exits: 3)
        for index in [3, 12, 24] { origin.route("/\(index).jpg", OriginResponse(body: image(index))) }
        guard isForeign else { return }
        for number in 0..<3 {
            folder.write(
                Array(#"{"count": 10, "successes": 9, "status_dict": {"success": 9}}"#.utf8),
                to: "out/0000\(number)_stats.json")
        }
        try FileManager.default.removeItem(atPath: folder.path("cache"))
    }

    @Test(
        "Only what has no image is requested; keys, columns and shards that are whole stay", arguments: [true, false])
    func heals(isForeign: Bool) async throws {
        for index in 10..<20 { origin.route("/\(index).jpg", OriginResponse(body: image(index))) }
        try await write(isForeign: isForeign)
        let requests = origin.requestCount()
        let before = (0..<3).map { shardRows($0) }
        let text = "3 shards of 25 lines, 3 of them without an image, in 3 shards"
        let plan = try await ran(heal(["--dry-run"]), says: text)
        #expect(plan.stderr.contains("3  httpError 500") && origin.requestCount() == requests, "\(plan.stderr)")
        let limited = try await ended(heal(["--yes", "--limit", "1", "--sidecar", "jsonl"]))
        #expect(
            await limited.wait() == .exited(64) && limited.stderr.contains("and no --limit, --sidecar"),
            "\(limited.stderr)")
        let refused = try await ended(heal())
        #expect(await refused.wait() == .exited(78) && refused.stderr.contains("add --yes"), "\(refused.stderr)")
        try await ran(heal(["--yes"]), says: "25 images in 3 shards, 3 of them new")
        #expect(origin.requestCount() == requests + 3)
        for number in 0..<3 {
            let after = shardRows(number)
            #expect(after.count == before[number].count)
            for (old, new) in zip(before[number], after) {
                for name in ["url", "key", "caption", "score"] {
                    #expect("\(old[name] ?? "-")" == "\(new[name] ?? "-")", "\(name)")
                }
                #expect(new["status"] as? String == "success" && new["width"] as? Int ?? 0 >= 60)
                guard old["status"] as? String == "success" else { continue }
                #expect(old["sha256"] as? String == new["sha256"] as? String)
            }
        }
        try await ran(heal(), says: "nothing is missing")
        // A shard that was not completed is done again; its results stay readable.
        try FileManager.default.removeItem(atPath: folder.path("out/00001_stats.json"))
        try await ran(heal(["--yes", "--manifest", folder.path("m.jsonl")]), says: "10 images in 1 shard")
        #expect(origin.requestCount() == requests + 3 && folder.read("m.jsonl")?.isEmpty == false)
        try await ran(["failures", "--cache", folder.path("out/.prefetch")])
        let export = try await ran(["export", "--format", "jsonl", "--cache", folder.path("out/.prefetch")])
        #expect(export.stdout.split(separator: "\n").count == 10, "\(export.stdout)")
    }

    @Test("A damaged image is fetched again, and a shard that is whole stays as it is")
    func damaged() async throws {
        try await write(isForeign: true)
        for index in 0..<10 where index != 3 { origin.route("/\(index).jpg", OriginResponse(status: 410)) }
        var bytes = try #require(folder.read("out/00001.tar"))
        // In the middle of the first image.
        for place in 700..<900 { bytes[place] = 0 }
        folder.write(bytes, to: "out/00001.tar")
        try await ran(heal(["--yes"]), says: "25 images in 3 shards")
        #expect(origin.requestCount("/10.jpg") == 2 && origin.requestCount("/11.jpg") == 1)
        let first = folder.read("out/00001.tar")
        for index in [24] { origin.route("/\(index).jpg", OriginResponse(status: 404)) }
        try await ran(heal(["--yes"]), says: "nothing is missing")
        #expect(folder.read("out/00001.tar") == first)
    }

    @Test("Images of another size than the options make are refused before anything is requested")
    func otherSize() async throws {
        try await write(isForeign: true, ["--resize", "32"])
        let requests = origin.requestCount()
        let plain = try await ended(heal(["--yes"]))
        #expect(await plain.wait() == .exited(78) && plain.stderr.contains("--resize 32"), "\(plain.stderr)")
        let other = try await ended(heal(["--yes", "--resize", "48"]))
        #expect(await other.wait() == .exited(78) && other.stderr.contains("would become 48x"), "\(other.stderr)")
        #expect(origin.requestCount() == requests)
        try await ran(heal(["--yes", "--resize", "32"]), says: "25 images in 3 shards")
        #expect(origin.requestCount() == requests + 3)
        let sizes = (0..<3).flatMap { shardRows($0) }.map {
            ($0["width"] as? Int ?? 0, $0["original_width"] as? Int ?? 0)
        }
        #expect(sizes.allSatisfy { $0.0 == 32 && $0.1 >= 60 }, "\(sizes)")
    }

    @Test("What is no folder of shards is named")
    func wrong() async throws {
        folder.write(Array("{\"url\":\"http://h/1.jpg\"}\n".utf8), to: "00000.jsonl")
        folder.write([], to: "00000.tar")
        try FileManager.default.createDirectory(atPath: folder.path("empty"), withIntermediateDirectories: false)
        for (path, code, text) in [
            (folder.path("none"), 73, "none"), (folder.path("."), 65, "it has no column key"),
            (folder.path("empty"), 66, "has no archives of shards"),
        ] as [(String, Int32, String)] {
            let heal = try await ended(["heal", path, "--yes"])
            #expect(await heal.wait() == .exited(code) && heal.stderr.contains(text), "\(heal.stderr)")
        }
    }
}

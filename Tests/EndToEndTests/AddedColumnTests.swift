import Foundation
import Origin
import TestSupport
import Testing

/// Columns of shards that are made of the images.
@Suite("Hashes and duplicates in shards", .timeLimit(.minutes(5)))
struct AddedColumnTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer

    init() throws {
        origin = try OriginServer()
        for index in 0..<25 { origin.route("/\(index).jpg", OriginResponse(body: image(index))) }
    }

    /// Lines 2, 5 and 13 have one image, and 7 and 8.
    private func image(_ index: Int) -> [UInt8] {
        let seed = [5: 2, 13: 2, 8: 7][index] ?? index
        return GeneratedImage.jpeg(seed: UInt64(seed), width: 160 + seed, height: 140)
    }

    private var cache: String { folder.path("cache") }

    private func urls(_ more: String = "") -> String {
        list((0..<25).map { "{\"url\":\"\(origin.url("/\($0).jpg"))\",\"caption\":\"c \($0)\"\(more)}" })
    }

    private func run(_ list: String, _ out: String = "out", _ more: [String] = []) -> [String] {
        [
            "run", list, "--allow-net", "127.0.0.0/8", "-n", "1", "--tries", "1", "--format", "webdataset",
            "--per-shard", "10", "--sidecar", "jsonl", "--add-columns", "duplicate_of,image_phash", "--out",
            folder.path(out), "--cache", cache,
        ] + more
    }

    private func stats(_ number: Int) throws -> [String: Any] {
        let text = Data(try #require(folder.read("out/0000\(number)_stats.json")))
        return try #require(try JSONSerialization.jsonObject(with: text) as? [String: Any])
    }

    /// The key and the image of each sample of an archive.
    private func samples(_ number: Int, _ out: String = "out") async throws -> [String] {
        let child = try await shell(
            "tar -tf \(out)/0000\(number).tar | grep '\\.jpg$' | sed 's/\\.jpg//'")
        return child.stdout.split(separator: "\n").map(String.init)
    }

    private func text(_ rows: [[String: Any]], _ name: String) -> [String] {
        rows.map { $0[name] as? String ?? "-" }
    }

    @Test("Of lines with the same image the lowest of a shard keeps it; the others have its key, and all have its hash")
    func duplicates() async throws {
        origin.route("/0.jpg", OriginResponse(status: 500))
        let list = urls()
        try await ran(run(list), exits: 3, says: "22 images in 3 shards, 3 of them new; 2 duplicates left out")
        let first = shardRows(0)
        #expect(text(first, "duplicate_of")[5] == "000002" && text(first, "duplicate_of")[8] == "000007")
        #expect(text(first, "duplicate_of").filter { $0 == "-" }.count == 8)
        let statuses = text(first, "status")
        #expect(statuses[0] == "failed_to_download" && statuses[5] == "duplicate" && statuses[8] == "duplicate")
        #expect(statuses.filter { $0 == "success" }.count == 7)
        #expect(text(first, "stored_sha256")[5] == text(first, "stored_sha256")[2])
        let hashes = text(first, "image_phash")
        #expect(hashes[5] == hashes[2] && hashes[0] == "-" && hashes[1...].allSatisfy { $0.utf8.count == 16 })
        #expect(Set(hashes).count == 8, "\(hashes)")
        // Of another shard, whose image stays.
        #expect(text(shardRows(1), "status")[3] == "success" && text(shardRows(1), "image_phash")[3] == hashes[2])
        #expect(try await samples(0) == ["01", "02", "03", "04", "06", "07", "09"].map { "0000\($0)" })
        let stats = try stats(0)
        #expect(
            stats["count"] as? Int == 10 && stats["successes"] as? Int == 7 && stats["failed_to_download"] as? Int == 1)
        #expect(stats["status_dict"] as? [String: Int] == ["success": 7, "duplicate": 2, "httpError 500": 1])

        // Another time nothing is new, elsewhere the same bytes are written.
        try await ran(run(list), exits: 3, says: "22 images in 3 shards, 0 of them new; 2 duplicates left out")
        try await ran(run(list, "again"), exits: 3, says: "3 of them new")
        #expect((1..<25).allSatisfy { origin.requestCount("/\($0).jpg") == 1 })
        for name in ["00000.tar", "00000.jsonl", "00001.tar", "00002.jsonl"] {
            #expect(folder.read("out/\(name)") == folder.read("again/\(name)"), "\(name)")
        }
        // A line before the others that gets its image late keeps it.
        origin.route("/0.jpg", OriginResponse(body: image(3)))
        let late = "22 images in 3 shards, 1 of them new; 3 duplicates left out"
        try await ran(run(list, "out", ["--retry-failed"]), says: late)
        #expect(
            shardRows(0)[3]["duplicate_of"] as? String == "000000" && shardRows(0)[0]["status"] as? String == "success")
    }

    @Test("Without the option nothing is added, and a column of the list keeps its name until it is")
    func names() async throws {
        let list = urls(",\"image_phash\":\"of the list\"")
        let plain = run(list).filter { $0 != "--add-columns" && $0 != "duplicate_of,image_phash" }
        try await ran(plain + ["--keep-columns", "image_phash"], says: "25 images in 3 shards, 3 of them new")
        #expect(shardRows(0)[5]["image_phash"] as? String == "of the list" && shardRows(0)[5]["duplicate_of"] == nil)
        try await ran(
            run(list, "out", ["--keep-columns", "image_phash"]), says: "23 images in 3 shards, 3 of them new")
        #expect(shardRows(0)[5]["list_image_phash"] as? String == "of the list")
        #expect((shardRows(0)[5]["image_phash"] as? String)?.utf8.count == 16)
    }

    @Test("In a folder with its cache a duplicate is found where the first one is")
    func ownCache() async throws {
        let own = folder.path("out/.prefetch")
        let command = run(urls(), "out", ["--cache", own])
        try await ran(command, says: "23 images in 3 shards, 3 of them new; 2 duplicates left out")
        var links = 0
        for name in TemporaryDirectory.contents(own + "/v1") where !name.hasSuffix("/") {
            links += (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(own)/v1/\(name)")) == nil ? 0 : 1
        }
        #expect(links == 25)
        let requests = origin.requestCount()
        let archive = folder.read("out/00000.tar")
        try await ran(command, says: "23 images in 3 shards, 0 of them new")
        #expect(origin.requestCount() == requests && folder.read("out/00000.tar") == archive)
        try await ran(["fsck", "--cache", own])
        let verified = try await ran(["cache", "verify", "--cache", own])
        #expect(verified.stdout.contains("25"), "\(verified.stdout)")
        try await ran(["export", "--format", "files", "--out", folder.path("files"), "--cache", own])
        for (name, index) in [("000003", 2), ("000006", 5), ("000009", 8), ("000014", 13)] {
            #expect(folder.read("files/\(name).jpg") == image(index), "\(name)")
        }
        // Each line has its image again where it is asked for.
        let plain = command.filter { $0 != "--add-columns" && $0 != "duplicate_of,image_phash" }
        try await ran(plain, says: "25 images in 3 shards, 3 of them new")
        try await ran(command, says: "23 images in 3 shards, 3 of them new")
        #expect(origin.requestCount() == requests && folder.read("out/00000.tar") == archive)
    }

    @Test("heal requests no duplicate, and writes the same columns")
    func heals() async throws {
        origin.route("/3.jpg", OriginResponse(status: 404))
        try await ran(run(urls()), exits: 3, says: "22 images in 3 shards")
        origin.route("/3.jpg", OriginResponse(body: image(3)))
        let requests = origin.requestCount()
        let before = shardRows(0)
        let heal = ["heal", folder.path("out"), "--allow-net", "127.0.0.0/8", "-n", "1", "--yes"]
        try await ran(heal + ["--dry-run"], says: "3 shards of 25 lines, 1 of them without an image, in 1 shard")
        try await ran(heal + ["--add-columns", "image_phash"], exits: 64, says: "and no --add-columns")
        try await ran(heal, says: "8 images in 1 shard, 1 of them new; 2 duplicates left out")
        #expect(origin.requestCount() == requests + 1)
        for (old, new) in zip(before, shardRows(0)) where old["status"] as? String != "failed_to_download" {
            #expect(NSDictionary(dictionary: old) == NSDictionary(dictionary: new))
        }
        try await ran(heal, says: "nothing is missing")
        // Without the first image the others are fetched again, too.
        folder.write(Array(folder.read("out/00000.tar")?.prefix(3000) ?? []), to: "out/00000.tar")
        try await ran(heal + ["--dry-run"], says: "10 of them without an image, in 1 shard")
        try await ran(heal, says: "8 images in 1 shard, 1 of them new; 2 duplicates left out")
        #expect(try await samples(0).count == 8)
    }

    @Test("Names that there are not, and formats without shards, are refused")
    func refused() async throws {
        let list = urls()
        for (words, text) in [
            (["--format", "webdataset", "--add-columns", "phash"], "image_phash and duplicate_of"),
            (["--format", "webdataset", "--add-columns", ","], "needs image_phash or duplicate_of"),
            (["--format", "files", "--add-columns", "image_phash"], "goes with --format webdataset or parquet"),
        ] {
            try await ran(
                ["run", list, "--cache", cache, "--out", folder.path("out")] + words, exits: 64, says: text)
        }
        try await ran(
            ["export", "--format", "csv", "--add-columns", "image_phash", "--cache", cache], exits: 64,
            says: "goes with --format webdataset or parquet or parquet-metadata")
    }

    @Test("DuckDB lists duplicates over all shards, and a shard of Parquet has each image once", .thorough, .needsPyPI)
    func parquet() async throws {
        let path = try await PythonTools.path()
        let environment = ["PREFETCH_DUCKDB": "\(path)/bin/duckdb", "PYTHONPATH": path]
        let words = run(urls(), "out", ["--format", "parquet"]).filter { $0 != "--sidecar" && $0 != "jsonl" }
        let child = try await ended(words, environment: environment)
        #expect(await child.wait() == .exited(0) && child.stderr.contains("23 images in 3 shards"), "\(child.stderr)")
        let said = try await shell(
            "'\(path)/bin/duckdb' -csv -noheader -c \""
                + "select min(key), count(*) from 'out/*.parquet' where stored_sha256 <> '' group by stored_sha256 having count(*) > 1 order by 1; "
                + "select count(jpg), count(image_phash), count(duplicate_of) from 'out/*.parquet'\"",
            environment: environment)
        #expect(said.stdout == "000002,3\n000007,2\n23,25,2\n", "\(said.stdout)\(said.stderr)")
    }

    @Test("Tables that are made later have the columns that the archives have", .thorough, .needsPyPI)
    func tables() async throws {
        let path = try await PythonTools.path()
        let environment = ["PREFETCH_DUCKDB": "\(path)/bin/duckdb", "PYTHONPATH": path]
        // Of the list, and added: each is what it was.
        let list = urls(",\"image_phash\":\"of the list\"")
        for (out, words) in [
            ("out", ["--keep-columns", "image_phash"]), ("own", ["--keep-columns", "image_phash", "--name", "own"]),
        ] {
            let added = ["--add-columns", "duplicate_of,image_phash"]
            let words = run(list, out, words).filter { out == "out" || !added.contains($0) }
            try await ran(words, says: "3 shards")
            let tables = try await ended(
                [
                    "export", "--format", "parquet-metadata", "--per-shard", "10", "--out", folder.path(out), "--cache",
                    cache,
                ], environment: environment)
            #expect(await tables.wait() == .exited(0), "\(tables.stderr)")
            let said = try await shell(
                "'\(path)/bin/duckdb' -csv -noheader -c \"describe from '\(out)/00000.parquet'\" | cut -d, -f1 | tr '\\n' ' '; "
                    + "'\(path)/bin/duckdb' -json -c \"from '\(out)/*.parquet' order by key\" > tables; "
                    + "cat \(out)/*.jsonl | python3 -c 'import json, sys; "
                    + "tables = json.load(open(\"tables\")); print([json.loads(line) for line in sys.stdin] == tables)'",
                environment: environment)
            let kept = out == "out" ? "list_image_phash" : "image_phash"
            let more = out == "out" ? " image_phash duplicate_of" : ""
            #expect(
                said.stdout
                    == "\(kept) caption url key status error_message width height original_width original_height "
                    + "exif sha256 stored_sha256\(more) True\n", "\(said.stdout)\(said.stderr)")
        }
    }
}

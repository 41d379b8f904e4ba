import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

/// What `export` makes for other programs, read by them; and `import`, which reads what they have.
@Suite("Exports for others, and imports", .timeLimit(.minutes(5)))
struct ExportFormatTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer
    private var cache: String { folder.path("cache") }

    init() throws {
        origin = try OriginServer()
        for index in 0..<6 {
            let body =
                index % 2 == 0
                ? GeneratedImage.png(seed: UInt64(index), width: 16, height: 12)
                : GeneratedImage.jpeg(seed: UInt64(index), width: 24, height: 8)
            origin.route("/p/\(index).img?a=b.jpg", OriginResponse(body: body))
        }
        origin.setFallback { _ in OriginResponse(status: 404) }
    }

    private func url(_ index: Int) -> String { origin.url("/p/\(index).img?a=b.jpg") }

    private func body(_ index: Int) -> [UInt8] {
        index % 2 == 0
            ? GeneratedImage.png(seed: UInt64(index), width: 16, height: 12)
            : GeneratedImage.jpeg(seed: UInt64(index), width: 24, height: 8)
    }

    private func fetch(
        _ file: String, into cache: String? = nil, exits code: Int32 = 3, _ more: [String] = []
    ) async throws {
        try await ran(
            ["run", file, "--cache", cache ?? self.cache, "--allow-net", "127.0.0.0/8", "-q", "-n", "1"] + more,
            exits: code)
    }

    /// Six images, one that is not there and one that is no URL.
    private func fetchAll() async throws -> String {
        let file = list((0..<6).map(url) + [origin.url("/none.jpg"), "not a url, \"quoted\""])
        try await fetch(file)
        return file
    }

    private func python(_ program: String, _ arguments: [String]) async throws -> String {
        let child = try await ChildProcess(
            "/usr/bin/env", ["python3", "-c", program] + arguments, environment: ["PYTHONDONTWRITEBYTECODE": "1"])
        #expect(await child.wait() == .exited(0), "\(child.stderr)")
        return child.stdout
    }

    private let net: [String] = []

    @Test("A CSV manifest is what Python's reader makes of it, and the failed list is a list")
    func texts() async throws {
        _ = try await fetchAll()
        try await ran(
            ["export", "--format", "csv", "-o", folder.path("m.csv"), "--cache", cache], says: "8 lines, 6 with an")
        let said = try await python(
            """
            import csv, sys
            rows = list(csv.DictReader(open(sys.argv[1], newline="")))
            print(len(rows), rows[0]["outcome"], rows[0]["width"], rows[7]["url"], repr(rows[7]["path"]))
            """, [folder.path("m.csv")])
        #expect(said == "8 downloaded 16 not a url, \"quoted\" ''\n" || said == "8 hit 16 not a url, \"quoted\" ''\n")
        let failed = try await ran(["export", "--format", "failed", "--cache", cache])
        #expect(failed.stdout == "\(origin.url("/none.jpg"))\n# not a url, \"quoted\"\n")
    }

    @Test("A tree has the folders of the URLs")
    func tree() async throws {
        _ = try await fetchAll()
        let out = folder.path("tree")
        try await ran(["export", "--format", "tree", "--out", out, "--cache", cache], says: "6 images, 6 of them new")
        let host = origin.url("").dropFirst("http://".count).replacing(":", with: "~3a")
        let names = folder.contents().filter { $0.hasPrefix("tree/") && !$0.hasSuffix("/") }
        #expect(names.contains("tree/http/\(host)/p/0.img~3fa=b.jpg~.png"), "\(names)")
        #expect(names.contains("tree/http/\(host)/p/1.img~3fa=b.jpg"), "\(names)")
        #expect(folder.read("tree/http/\(host)/p/1.img~3fa=b.jpg") == body(1))
        try await ran(["export", "--format", "tree", "--out", out, "--cache", cache], says: "6 images, 0 of them new")
        // A link in the place of a folder is not followed.
        let other = TemporaryDirectory()
        #expect(mkdir(folder.path("linked"), 0o777) == 0 && symlink(other.path, folder.path("linked/http")) == 0)
        try await ran(["export", "--format", "tree", "--out", folder.path("linked"), "--cache", cache], exits: 74)
        #expect(other.contents() == [])
    }

    @Test("run and retry write the format of --out at their end: what export makes", arguments: ["tree", "webdataset"])
    func outFormats(format: String) async throws {
        let file = list((0..<6).map(url) + [origin.url("/late.png")])
        let out = folder.path("out")
        try await fetch(file, ["--out", out, "--format", format])
        try await ran(["export", "--format", format, "--out", folder.path("same"), "--cache", cache])
        func names(_ name: String) -> [String] {
            folder.contents().filter { $0.hasPrefix("\(name)/") && !$0.hasSuffix("/") }
                .map { String($0.dropFirst(name.count)) }
        }
        #expect(names("out") == names("same") && names("out").count == (format == "tree" ? 6 : 3))
        for name in names("out") { #expect(folder.read("out\(name)") == folder.read("same\(name)")) }
        origin.route("/late.png", OriginResponse(body: body(0)))
        let late = folder.path("late")
        try await ran(
            ["retry", "--cache", cache, "--allow-net", "127.0.0.0/8", "-q", "-n", "1", "--out", late]
                + ["--format", format], says: "7 image")
        #expect(names("late").count == (format == "tree" ? 7 : 3))
        try await ran(["run", file, "--cache", cache, "--format", format], exits: 64, says: "--format goes with --out")
    }

    @Test("Files of more than 10,000 lines are in folders of 10,000, and import reads them")
    func shardedFiles() async throws {
        var lines = Array(repeating: "no url", count: 10_001)
        (lines[0], lines[9_999], lines[10_000]) = (url(0), url(1), url(2))
        let file = list(lines)
        let out = folder.path("out")
        try await fetch(file, ["--out", out])
        for (name, index) in [("00000/000001.png", 0), ("00000/010000.jpg", 1), ("00001/010001.png", 2)] {
            #expect(folder.read("out/\(name)") == body(index), "\(name)")
        }
        try await ran(["export", "--format", "files", "--out", out, "--cache", cache], says: "3 images, 0 of them new")
        let back = try await ran([
            "cache", "import", out, "--from", "files", "--list", file, "--cache", folder.path("b"),
        ])
        #expect(back.stdout.hasPrefix("3 imported"), "\(back.stdout)")
        // As many lines as one folder has stay flat.
        try await fetch(list(Array(lines.prefix(10_000)), "flat.txt"), ["--out", folder.path("flat")])
        #expect(folder.read("flat/010000.jpg") == body(1))
    }

    @Test("Samples of a list with captions have them as text, empty if a line has none")
    func captions() async throws {
        let file = list(
            ["url,title", "\(url(0)),\"a cat, grey\"", "\(url(1)),", "\(url(2)),ein Käfer"], "pictures.csv")
        let out = folder.path("out")
        try await fetch(file, exits: 0, ["--out", out, "--format", "webdataset", "--caption-column", "title"])
        let read = """
            import sys, tarfile
            archive = tarfile.open(sys.argv[1] + "/00000.tar")
            print([(m.name, archive.extractfile(m).read().decode()) for m in archive if m.name.endswith("txt")])
            """
        let texts = "[('000000000.txt', 'a cat, grey'), ('000000001.txt', ''), ('000000002.txt', 'ein Käfer')]\n"
        #expect(try await python(read, [out]) == texts)
        let at = ["--cache", cache]
        let again = ["export", "--format", "webdataset", "--out"]
        try await ran(
            again + [out, "--caption-column", "title"] + at, says: "0 of them new; captions from the column title")
        // A column of another name is none by itself, and one that is not there is refused.
        try await ran(again + [folder.path("bare")] + at)
        #expect(try await python(read, [folder.path("bare")]) == "[]\n")
        try await ran(again + [out, "--caption-column", "alt"] + at, exits: 78, says: "kept columns: title")
        // By its usual name, as members of lines of JSON.
        let lines = list(["{\"url\":\"\(url(0))\",\"text\":\"grey\"}"], "lines.jsonl")
        try await fetch(lines, exits: 0)
        try await ran(again + [folder.path("usual")] + at)
        #expect(try await python(read, [folder.path("usual")]) == "[('000000000.txt', 'grey')]\n")
    }

    @Test("SDWebImage's layouts have its names in its folders, of today", arguments: SDWebImageFileName.Layout.allCases)
    func sdWebImage(layout: SDWebImageFileName.Layout) async throws {
        let file = try await fetchAll()
        // Weeks old in the cache: an app would delete them at its first start.
        let disk = try DiskCache(directory: cache)
        let then = timespec(tv_sec: time(nil) - 30 * 86_400, tv_nsec: 0)
        for index in 0..<6 { utimensat(AT_FDCWD, disk.images.path(of: CacheKey(url(index))), [then, then], 0) }
        let out = folder.path("app")
        let export = try await ran(
            [
                "export", "--format", "sdwebimage", "--out", out, "--sdwebimage-version", layout.rawValue, "--cache",
                cache,
            ], says: "6 images")
        let below =
            layout == .v5 ? "com.hackemist.SDImageCache/default" : "default/com.hackemist.SDWebImageCache.default"
        let names = folder.contents().filter { $0.hasPrefix("app/\(below)/") && !$0.hasSuffix("/") }
        #expect(names.count == 6)
        let sum = try await python(
            "import hashlib, sys; print(hashlib.md5(sys.argv[1].encode()).hexdigest())", [url(1)])
        // v3 has the extension of the whole key, the others that of the URL's path.
        let name = "app/\(below)/\(sum.dropLast()).\(layout == .v3 ? "jpg" : "img")"
        #expect(folder.read(name) == body(1), "\(names)")
        var status = stat()
        #expect(stat(folder.path(name), &status) == 0 && time(nil) - status.st_mtim.tv_sec < 300)
        #expect(status.st_nlink == 1 && status.st_mode & 0o200 != 0)
        #expect(export.stdout.contains(layout == .v5 ? "SDImageCache(namespace: \"default\"" : "addReadOnlyCachePath"))
        // The cache keeps its dates.
        #expect(stat(disk.images.path(of: CacheKey(url(1))), &status) == 0 && status.st_mtim.tv_sec == then.tv_sec)

        // And back into another cache, from the folder itself or one above it.
        for (number, path) in [out, "\(out)/\(below)"].enumerated() {
            let other = folder.path("other\(number)")
            let back = try await ran([
                "cache", "import", path, "--from", "sdwebimage", "--list", file, "--cache", other,
            ])
            #expect(back.stdout == "6 imported, 0 there already, 2 without a file\n")
            let copy = try DiskCache(directory: other)
            for index in 0..<6 { #expect(try copy.find(forKey: url(index), atLeast: .none)?.bytes() == body(index)) }
            let again = try await ran([
                "cache", "import", path, "--from", "sdwebimage", "--list", file, "--cache", other,
            ])
            #expect(again.stdout == "0 imported, 6 there already, 2 without a file\n")
        }
    }

    @Test("Shards are the same byte for byte, Python reads what is in them, and no other file is replaced")
    func webDataset() async throws {
        let file = try await fetchAll()
        let (one, two) = (folder.path("one"), folder.path("two"))
        func shards(_ out: String, _ words: [String] = [], cache: String? = nil) -> [String] {
            ["export", "--format", "webdataset", "--out", out, "--sidecar", "jsonl", "--cache", cache ?? self.cache]
                + words
        }
        try await ran(shards(one, ["--per-shard", "4"]), says: "6 images in 2 shards, 2 of them new")
        let names = ["00000.jsonl", "00000.tar", "00000_stats.json", "00001.jsonl", "00001.tar", "00001_stats.json"]
        #expect(folder.contents().filter { $0.hasPrefix("one/") && $0 != "one/" } == names.map { "one/\($0)" })
        // Another cache, filled at another time: another batch, whose stats have other times.
        try await fetch(file, into: folder.path("second"))
        try await ran(shards(two, ["--per-shard", "4"], cache: folder.path("second")))
        for name in names where !name.hasSuffix("_stats.json") {
            #expect(folder.read("one/\(name)") == folder.read("two/\(name)"), "\(name)")
        }
        try await ran(shards(one, ["--per-shard", "4"]), says: "2 shards, 0 of them new")
        let said = try await python(
            """
            import hashlib, json, sys, tarfile
            for name in ("00000.tar", "00001.tar"):
                archive = tarfile.open(sys.argv[1] + "/" + name)
                members = archive.getmembers()
                for image, about in zip(members[::2], members[1::2]):
                    assert image.name.split(".")[0] == about.name.split(".")[0], (image.name, about.name)
                    assert image.mtime == 0 and image.uid == 0
                    facts = json.load(archive.extractfile(about))
                    data = archive.extractfile(image).read()
                    assert hashlib.sha256(data).hexdigest() == facts["sha256"] == facts["stored_sha256"]
                    print(name, image.name, facts["key"], facts["width"])
            for name in ("00000", "00001"):
                for line in open(f"{sys.argv[1]}/{name}.jsonl"): print(list(json.loads(line).values())[1:4])
                stats = json.load(open(f"{sys.argv[1]}/{name}_stats.json"))
                print(stats["count"], stats["successes"], stats["failed_to_download"], stats["status_dict"])
            """, [one])
        #expect(
            said == """
                00000.tar 000000.jpg 000000 16
                00000.tar 000001.jpg 000001 24
                00000.tar 000002.jpg 000002 16
                00000.tar 000003.jpg 000003 24
                00001.tar 000010.jpg 000010 16
                00001.tar 000011.jpg 000011 24
                ['000000', 'success', None]
                ['000001', 'success', None]
                ['000002', 'success', None]
                ['000003', 'success', None]
                4 4 0 {'success': 4}
                ['000010', 'success', None]
                ['000011', 'success', None]
                ['000012', 'failed_to_download', 'httpError 404']
                ['000013', 'failed_to_download', 'invalidURL']
                4 2 2 {'httpError 404': 1, 'invalidURL': 1, 'success': 2}

                """)
        // Of another batch, and what is no shard at all.
        try await ran(shards(two, ["--per-shard", "3"]), exits: 73, says: "00000_stats.json is there already")
        let taken = folder.path("taken")
        #expect(mkdir(taken, 0o777) == 0)
        folder.write([1, 2, 3], to: "taken/00001.jsonl")
        try await ran(shards(taken, ["--per-shard", "4"]), exits: 73, says: "00001.jsonl is there already")
        #expect(folder.read("taken/00001.jsonl") == [1, 2, 3])
        // What the retry brought is in the shard that it belongs to.
        let first = folder.read("one/00000.tar")
        origin.route("/none.jpg", OriginResponse(body: body(1)))
        try await ran(["retry", "--cache", cache, "--allow-net", "127.0.0.0/8", "-q", "-n", "1"], exits: 3)
        try await ran(shards(one, ["--per-shard", "4"]), says: "7 images in 2 shards, 1 of them new")
        #expect(folder.read("one/00000.tar") == first)
        let late = try await python(
            "import sys, tarfile; print([m.name for m in tarfile.open(sys.argv[1]) if 'jpg' in m.name])",
            ["\(one)/00001.tar"])
        #expect(late == "['000010.jpg', '000011.jpg', '000012.jpg']\n")
        // An image that the cache loses stays in its shard.
        try await ran(["cache", "rm", url(0), "--cache", cache])
        try await ran(shards(one, ["--per-shard", "4"]), says: "1 shard stayed")
        #expect(folder.read("one/00000.tar") == first)
        // Its own name for each image.
        try await ran(shards(folder.path("own"), ["--image-member", "ext"]), says: "one name for all images")
        let own = try await python(
            "import sys, tarfile; print([m.name for m in tarfile.open(sys.argv[1]) if 'json' not in m.name][:2])",
            [folder.path("own/00000.tar")])
        #expect(own == "['000000001.jpg', '000000002.png']\n")
    }

    @Test("A lock is a list that checks its bytes: what differs ends as mismatch and is not in the cache")
    func lock() async throws {
        _ = try await fetchAll()
        let lock = folder.path("prefetch.lock")
        try await ran(["export", "--format", "lock", "-o", lock, "--cache", cache], says: "2 lines without an image")
        let lines = String(decoding: folder.read("prefetch.lock") ?? [], as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 8 && lines[0] == "# prefetch.lock 1")
        #expect(lines[2] == "\(url(0))\t\(SHA256.hash(body(0)).hex)\t\(body(0).count)\t16x12")

        let fresh = folder.path("fresh")
        try await fetch(lock, into: fresh, exits: 0)
        // One has changed at the origin since.
        let changed = GeneratedImage.png(seed: 77, width: 16, height: 12)
        origin.route("/p/2.img?a=b.jpg", OriginResponse(body: changed))
        let late = folder.path("late")
        try await fetch(lock, into: late)
        let disk = try DiskCache(directory: late)
        #expect(try disk.audit.count().images == 5 && disk.find(forKey: url(2), atLeast: .none)?.bytes() == nil)
        let failures = try await ran(["failures", "--json", "--cache", late])
        #expect(
            failures.stdout.contains(#""url":"\#(url(2))","outcome":"mismatch","reason":null,"http_status":200"#),
            "\(failures.stdout)")
        #expect(failures.stdout.contains(SHA256.hash(changed).hex))
        // A retry still knows what it must be.
        try await ran(["retry", "--cache", late, "--allow-net", "127.0.0.0/8", "-q", "-n", "1"], exits: 3)
        #expect(try disk.find(forKey: url(2), atLeast: .none)?.bytes() == nil)
        origin.route("/p/2.img?a=b.jpg", OriginResponse(body: body(2)))
        try await ran(["retry", "--cache", late, "--allow-net", "127.0.0.0/8", "-q", "-n", "1"])
        #expect(try disk.find(forKey: url(2), atLeast: .none)?.bytes() == body(2))

        // What the cache has under the URL, with other bytes, is no hit; without a network it ends as mismatch and stays.
        let other = GeneratedImage.png(seed: 5, width: 5, height: 5)
        try disk.images.storeVerified(other, forKey: url(4), level: .decode)
        try await fetch(lock, into: late, ["--options", "fromCacheOnly"])
        #expect(try disk.find(forKey: url(4), atLeast: .none)?.bytes() == other)
        try await fetch(lock, into: late, exits: 0)
        #expect(try disk.find(forKey: url(4), atLeast: .none)?.bytes() == body(4))
    }

    @Test("Numbered files, a manifest and a folder come into the cache; what is no image is named")
    func imports() async throws {
        let file = try await fetchAll()
        let files = folder.path("files")
        try await ran(["export", "--format", "files", "--out", files, "--cache", cache])
        try await ran(["export", "--format", "jsonl", "-o", folder.path("m.jsonl"), "--cache", cache])
        folder.write(Array("<html>".utf8), to: "files/000007.jpg")
        let numbered = try await ran(
            ["cache", "import", files, "--from", "files", "--list", file, "--json", "--cache", folder.path("a")],
            exits: 1,
            says: "refused: 000007.jpg")
        #expect(numbered.stdout == #"{"v":1,"stored":6,"present":0,"missing":1,"refused":1}"# + "\n")
        let manifest = try await ran([
            "cache", "import", folder.path("m.jsonl"), "--from", "jsonl", "--cache", folder.path("b"),
        ])
        #expect(manifest.stdout == "6 imported, 0 there already\n")
        for name in ["a", "b"] {
            let disk = try DiskCache(directory: folder.path(name))
            for index in 0..<6 { #expect(try disk.find(forKey: url(index), atLeast: .none)?.bytes() == body(index)) }
        }
        #expect(mkdir(folder.path("site"), 0o777) == 0 && mkdir(folder.path("site/a b"), 0o777) == 0)
        folder.write(body(0), to: "site/a b/ü.png")
        #expect(symlink("/etc/hostname", folder.path("site/link.png")) == 0)
        let site = try await ran([
            "cache", "import", folder.path("site"), "--from", "folder", "--base-url", "https://example.org/", "--cache",
            folder.path("c"),
        ])
        #expect(site.stdout == "1 imported, 0 there already\n")
        let disk = try DiskCache(directory: folder.path("c"))
        #expect(try disk.find(forKey: "https://example.org/a%20b/%C3%BC.png", atLeast: .none)?.bytes() == body(0))
        try await ran(["cache", "import", files, "--from", "files", "--cache", folder.path("d")], exits: 64)
        try await ran(
            [
                "cache", "import", folder.path("no"), "--from", "sdwebimage", "--list", file, "--cache",
                folder.path("d"),
            ],
            exits: 66)
    }
}

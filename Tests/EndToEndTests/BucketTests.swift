import Foundation
import Origin
import PrefetchModel
import TestSupport
import Testing
import WebImage

@Suite("Shards in a bucket", .timeLimit(.minutes(5)))
struct BucketTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer

    init() throws {
        origin = try OriginServer()
        for index in 0..<40 where index % 8 != 5 {
            origin.route("/\(index).jpg", OriginResponse(body: Self.image(index)))
        }
        origin.setFallback { _ in OriginResponse(status: 404) }
    }

    private static func image(_ index: Int) -> [UInt8] {
        GeneratedImage.jpeg(seed: UInt64(index), width: 24, height: 8)
    }

    private var lines: [String] {
        (0..<40).map { #"{"url":"\#(origin.url("/\($0).jpg"))","caption":"e\#u{301} \#($0)"}"# }
    }

    private func run(_ out: String, _ more: [String] = []) -> [String] {
        [
            "run", list(lines), "--cache", folder.path("cache"), "--allow-net", "127.0.0.0/8", "-n", "2", "--format",
            "webdataset", "--per-shard", "10", "--sidecar", "jsonl", "--out", out,
        ] + more
    }

    /// A command that has ended.
    private func coord(_ words: [String], _ store: S3Stub, _ more: [String: String] = [:]) async throws -> ChildProcess
    {
        let child = try await ChildProcess(
            builtProduct("prefetch-coord"), words, environment: store.environment.merging(more) { $1 })
        await child.wait()
        return child
    }

    /// All that there has to be.
    private static let names = (0..<4).flatMap { ["0000\($0).jsonl", "0000\($0).tar", "0000\($0)_stats.json"] }

    /// Compares what Python's tarfile and json make of the objects with the list.
    private func check(
        _ store: S3Stub, _ prefix: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        #expect(try await store.keys().sorted() == Self.names.map { prefix + $0 }, sourceLocation: sourceLocation)
        let saved = "saved-\(UUID())"
        for key in try await store.keys() { try await store.save(key, as: folder.path("\(saved)/\(key)")) }
        let child = try await ChildProcess(
            "/usr/bin/env",
            [
                "python3", "-B", "-c",
                """
                import glob, hashlib, json, sys, tarfile
                for name in sorted(glob.glob(sys.argv[1] + "/*.tar")):
                    with tarfile.open(name) as archive:
                        files = {member.name: archive.extractfile(member).read() for member in archive}
                    for key in sorted({name.split(".")[0] for name in files}):
                        fields = json.loads(files[key + ".json"])
                        assert hashlib.sha256(files[key + ".jpg"]).hexdigest() == fields["stored_sha256"]
                        print(key, fields["url"].rsplit("/", 1)[1], files[key + ".txt"].decode(), hashlib.sha256(files[key + ".jpg"]).hexdigest())
                """, folder.path("\(saved)/\(prefix)"),
            ])
        #expect(await child.wait() == .exited(0), "\(child.stderr)", sourceLocation: sourceLocation)
        let expected = (0..<40).filter { $0 % 8 != 5 }.map { index in
            "0000\(index / 10)\(index % 10) \(index).jpg e\u{301} \(index) \(SHA256.hash(Self.image(index)).hex)\n"
        }
        #expect(child.stdout.hasBytes(of: expected.joined()), "\(child.stdout)", sourceLocation: sourceLocation)
    }

    @Test("A run puts shards, a second one finds them, and export writes the same bytes")
    func whole() async throws {
        let store = try await S3Stub(["--page", "3"])
        let first = try await coord(run("s3://images/a b+\u{E9}%/x"), store)
        #expect(
            first.stderr.contains("35 images in 4 shards, 4 of them new; captions from the column caption"), "\(first)")
        try await check(store, "a b+\u{E9}%/x/")
        let before = try await store.log().count
        let export = [
            "export", "--cache", folder.path("cache"), "--format", "webdataset", "--per-shard", "10", "--sidecar",
            "jsonl", "--out",
        ]
        let again = try await coord(export + ["s3://images/a b+\u{E9}%/x"], store)
        #expect(again.stderr.contains("35 images in 4 shards, 0 of them new"), "\(again)")
        #expect(try await store.log()[before...].allSatisfy { !$0.hasPrefix("PUT") && !$0.hasPrefix("DELETE") })
        let local = try await coord(export + [folder.path("local")], store)
        #expect(local.stderr.contains("35 images in 4 shards, 4 of them new"), "\(local)")
        for name in Self.names where !name.hasSuffix(".json") {
            try await store.save("a b+\u{E9}%/x/\(name)", as: folder.path("saved"))
            #expect(folder.read("local/\(name)") == folder.read("saved"), "\(name)")
        }
        // Of another length: nothing of it is overwritten.
        let other = try await coord(export + ["s3://images/a b+\u{E9}%/x", "--per-shard", "20"], store)
        #expect(other.stderr.contains("00000_stats.json is there already and is another file; it was not overwritten"))
        try await check(store, "a b+\u{E9}%/x/")
    }

    @Test(
        "A store that fails for some requests costs tries, and nothing else",
        arguments: [
            "action=503&count=3", "method=PUT&suffix=.tar&action=reset&count=2", "method=PUT&action=half&count=2",
            "method=PUT&suffix=.tar&action=flip&count=1", "method=PUT&suffix=_stats.json&action=drop&count=1",
            "method=HEAD&action=500&count=2", "method=GET&action=drop&count=2", "method=DELETE&action=503&count=2",
        ])
    func faults(_ fault: String) async throws {
        let store = try await S3Stub()
        try await store.fail(fault)
        let end = try await coord(run("s3://images/x"), store)
        #expect(end.stderr.contains("35 images in 4 shards, 4 of them new"), "\(end)")
        #expect(try await store.faultsLeft() == "0")
        try await check(store, "x/")
        #expect(try await store.uploads() == 0)
    }

    private func hold(_ path: String) {
        var held = OriginResponse(body: Self.image(3))
        held.fault = .stallBeforeHeader
        origin.route(path, held)
    }

    @Test("A shard is put as soon as its last line has ended; what a killed run has put is not put again")
    func killed() async throws {
        let store = try await S3Stub()
        hold("/3.jpg")
        let first = try await ChildProcess(
            builtProduct("prefetch-coord"), run("s3://images/x"), environment: store.environment)
        try await until { try await store.keys().count { $0.hasSuffix("_stats.json") && !$0.contains("/.") } == 3 }
        // Of the first one nothing is there, and of the others no mark.
        try await until { try await store.keys() == Self.names.dropFirst(3).map { "x/" + $0 } }
        first.signal(SIGKILL)
        #expect(await first.wait() == .signalled(SIGKILL))
        origin.release("/3.jpg")
        let before = try await store.log().count
        let second = try await coord(run("s3://images/x"), store)
        #expect(second.stderr.contains("35 images in 4 shards, 1 of them new"), "\(second)")
        let puts = try await store.log()[before...].filter { $0.hasPrefix("PUT") }
        #expect(puts.count == 4 && puts.allSatisfy { $0.contains("00000") }, "\(puts)")
        try await check(store, "x/")
        // Another program has taken one away, and damaged another.
        try await store.delete("x/00002.tar")
        try await store.put("x", as: "x/00001.jsonl")
        let third = try await coord(run("s3://images/x"), store)
        #expect(third.stderr.contains("35 images in 4 shards,"), "\(third)")
        let export = [
            "export", "--cache", folder.path("cache"), "--format", "webdataset", "--per-shard", "10", "--sidecar",
            "jsonl", "--out", "s3://images/x",
        ]
        let fourth = try await coord(export, store)
        #expect(fourth.stderr.contains("35 images in 4 shards,"), "\(fourth)")
        try await check(store, "x/")
    }

    @Test("A signal ends a run whose store hangs, and the next one completes it")
    func stopped() async throws {
        let store = try await S3Stub()
        try await store.fail("method=PUT&suffix=.tar&action=hang&count=1")
        let first = try await ChildProcess(
            builtProduct("prefetch-coord"), run("s3://images/x"), environment: store.environment)
        try await until { try await store.isWaiting() }
        first.signal(SIGINT)
        first.signal(SIGINT)
        #expect(await first.wait() == .exited(75), "\(first)")
        try await store.release()
        let second = try await coord(run("s3://images/x"), store)
        #expect(second.stderr.contains("35 images in 4 shards"), "\(second)")
        try await check(store, "x/")
    }

    /// With a cache and a Redis of its own.
    private func apart(_ out: String, _ name: String) -> [String] {
        run(out, ["--state", folder.path(name + ".state")]).map {
            $0 == folder.path("cache") ? folder.path(name) : $0
        }
    }

    @Test("Of two runs without a common Redis the one with more images has the shard, and none is of both")
    func apart() async throws {
        let store = try await S3Stub()
        origin.route("/3.jpg", OriginResponse(status: 404))
        // It stands between its archive and its table, while the other one, which gets an image more, writes both.
        try await store.fail("method=PUT&suffix=00000.jsonl&action=hang&count=1")
        let first = try await ChildProcess(
            builtProduct("prefetch-coord"), run("s3://images/x"), environment: store.environment)
        try await until { try await store.isWaiting() }
        origin.route("/3.jpg", OriginResponse(body: Self.image(3)))
        let second = try await coord(apart("s3://images/x", "second"), store)
        #expect(second.stderr.contains("35 images in 4 shards"), "\(second)")
        try await store.release()
        #expect(await first.wait() == .exited(3), "\(first)")
        #expect(first.stderr.contains("1 shard stayed"), "\(first)")
        try await check(store, "x/")
        // Of the same images, at the same moment as often as not.
        async let one = coord(apart("s3://images/y", "one"), store)
        async let two = coord(apart("s3://images/y", "two"), store)
        for end in try await [one, two] { #expect(end.stderr.contains("35 images in 4 shards"), "\(end)") }
    }

    @Test("Two runs of a list put each shard once")
    func together() async throws {
        let store = try await S3Stub()
        async let one = coord(run("s3://images/x"), store)
        async let other = coord(run("s3://images/x"), store)
        let ends = try await [one, other]
        #expect(ends.allSatisfy { $0.stderr.contains("35 images in 4 shards") }, "\(ends)")
        try await check(store, "x/")
        let puts = try await store.log().filter { $0.hasPrefix("PUT") && $0.contains(".tar") }
        #expect(puts.count == 4, "\(puts)")
    }

    @Test("What cannot work is said before anything is requested or made")
    func refused() async throws {
        let store = try await S3Stub()
        for (out, variables, code, text) in [
            ("s3://images/x", ["AWS_SECRET_ACCESS_KEY": "x"], 73, "error: s3://images/x: SignatureDoesNotMatch (403)"),
            (
                "s3://images/x", ["AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": "/none"], 78,
                "error: there are no keys for the object store"
            ),
            ("s3://images/x", ["AWS_ENDPOINT_URL": origin.url("")], 73, "hint: see that AWS_ENDPOINT_URL"),
            ("s3://images/x", ["AWS_ENDPOINT_URL": "x"], 78, "error: \"x\" is no address of an object store"),
            ("s3://images/x", ["TMPDIR": folder.path("none")], 73, "error: cannot make files in"),
            ("s3:/images/x", [:], 64, "error: \"s3:/images/x\" names no bucket"),
            ("gs://images/x", [:], 64, "error: --out is a folder, or s3://BUCKET/PREFIX"),
            ("s3://others/x", [:], 73, "error: there is no bucket others at"),
            ("s3://images/../x", [:], 64, "error: the prefix of \"s3://images/../x\" cannot be used"),
        ] as [(String, [String: String], Int32, String)] {
            let end = try await coord(run(out), store, variables)
            #expect(await end.wait() == .exited(code) && end.stderr.contains(text), "\(end)")
            #expect(end.stderr.contains("hint: "), "\(end)")
        }
        for words in [
            ["run", "l", "--out", "s3://images/x"], ["run", "l", "--out", "s3://images/x", "--format", "tree"],
            ["run", "l", "--manifest", "s3://images/x"], ["export", "--format", "files", "--out", "s3://images/x"],
            ["export", "--format", "jsonl", "-o", "s3://images/x"], ["heal", "s3://images/x"],
        ] {
            #expect(await (try await coord(words, store)).wait() == .exited(64), "\(words)")
        }
        #expect(folder.contents() == ["urls.txt"])
        #expect(try await store.keys().isEmpty)
        // Of another program: it stays, and the images are there.
        try await store.put("x", as: "y/00001.tar")
        let end = try await coord(run("s3://images/y"), store)
        #expect(await end.wait() == .exited(74))
        #expect(
            end.stderr.contains("error: s3://images/y/00001.tar is there already and is another file")
                && end.stderr.contains("; the batch is over and its images are there; write it later:"), "\(end)")
        #expect(end.stderr.contains("--out s3://images/y"), "\(end)")
    }
}

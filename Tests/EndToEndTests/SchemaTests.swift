import Foundation
import Origin
import TestSupport
import Testing
import WebImage

/// What the commands print as JSON, against docs/schema.json.
@Suite("The schema of what is JSON", .timeLimit(.minutes(5)))
struct SchemaTests: FolderSuite {
    let folder = TemporaryDirectory()
    private static let schema = URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "../../docs/schema.json"
    )
    .standardized.path()

    /// Lines of a file, each checked against a definition: what does not hold, by the well-kept validator of Python.
    private static let validator = """
        import json, sys, jsonschema
        schema = json.load(open(sys.argv[1]))
        jsonschema.Draft202012Validator.check_schema(schema)
        count = 0
        for line in open(sys.argv[2]):
            name, text = line.rstrip("\\n").split("\\t", 1)
            assert name in schema["$defs"], name
            check = jsonschema.Draft202012Validator({"$ref": "#/$defs/" + name, "$defs": schema["$defs"]})
            for error in check.iter_errors(json.loads(text)):
                print(name, "/".join(str(part) for part in error.absolute_path), error.message[:300])
            count += 1
        print(count, "checked")
        """

    private func validate(_ lines: [(name: String, text: String)]) async throws -> [String] {
        folder.write(Array(lines.map { "\($0.name)\t\($0.text)\n" }.joined().utf8), to: "lines")
        let check = try await ChildProcess(
            "/usr/bin/env", ["python3", "-c", Self.validator, Self.schema, folder.path("lines")])
        #expect(await check.wait() == .exited(0), "\(check.stderr)")
        return check.stdout.split(separator: "\n").map(String.init)
    }

    @Test("What every reading command prints after a real run is as the schema says")
    func outputs() async throws {
        let origin = try OriginServer()
        for index in 0..<6 {
            origin.route(
                "/\(index).png", OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 16, height: 16)))
        }
        origin.setFallback { _ in OriginResponse(status: 404) }
        let urls = (0..<9).map { origin.url("/\($0).png") } + ["no url", "http://192.0.2.1/\u{202E}a.png"]
        folder.write(Array(urls.map { $0 + "\n" }.joined().utf8), to: "urls.txt")
        let at = ["--cache", folder.path("cache")]
        let run = try await ended(
            ["run", folder.path("urls.txt"), "-n", "1", "--json", "--progress", "json", "--allow-net", "127.0.0.0/8"]
                + at)
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        let url = origin.url("/1.png")
        var lines = [("batch", run.stdout)] + run.stderr.split(separator: "\n").map { ("event", String($0)) }
        for (name, words) in [
            ("status", ["status", "--json"]), ("workers", ["workers", "--json"]), ("failure", ["failures", "--json"]),
            ("failure_counts", ["failures", "--by", "cause", "--json"]),
            ("failure_counts", ["failures", "--by", "host", "--json"]),
            ("line", ["export", "--format", "jsonl"]), ("failed_url", ["blacklist", "list", "--json"]),
            ("why", ["why", url, "--json"]),
            ("why", ["why", origin.url("/7.png"), "--json"]), ("why", ["why", "http://192.0.2.9/", "--json"]),
            ("image", ["cache", "ls", "--json"]),
            ("cache_summary", ["cache", "ls", "--summary", "--json"]), ("cache_verify", ["cache", "verify", "--json"]),
            ("fsck", ["fsck", "--json"]),
            ("doctor", ["doctor", "--json"]), ("settings", ["doctor", "--settings", "--json"]),
            ("event", ["watch", "--json", "--from-start"]),
            ("dry_run", ["run", folder.path("urls.txt"), "--dry-run", "--json"]),
            ("batch", ["retry", "-n", "1", "--json", "--quiet"]),
        ] {
            let child = try await ended(words + at)
            let found = child.stdout.split(separator: "\n").map { (name, String($0)) }
            #expect(!found.isEmpty, "\(words): \(child.stderr)")
            lines += found
        }
        // What is said of one that runs has more in it.
        let b = try await RemoteBatch()
        _ = try await b.submit(["http://192.0.2.1/a.png"], as: "open", ["--json", "--slot", "home"])
        let watch = try await b.coord(["watch", "open", "--progress", "json"])
        try await until { watch.stderr.contains(#""event":"rate""#) }
        watch.signal(SIGINT)
        await watch.wait()
        lines += watch.stderr.split(separator: "\n").map { ("event", String($0)) }
        let oldest = try await b.coord(["why", "--oldest", "open", "--json"])
        await oldest.wait()
        #expect(oldest.stdout.contains(#""oldest":[{"#), "\(oldest.stdout)\(oldest.stderr)")
        lines.append(("why_oldest", oldest.stdout))
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"),
            ["--redis", b.redis.url, "--cache", b.folder.path("w"), "--cache-max-size", "1GB", "--log-format", "json"])
        try await until { worker.stderr.contains("joined") }
        // The first sign of life brings what it knows of its cache.
        let cache = #""cache":{"caches":1,"images":0,"bytes":0,"limit_bytes":1000000000}"#
        try await until {
            let child = try await b.coord(["status", "open", "--json"])
            await child.wait()
            guard child.stdout.contains(cache) else { return false }
            lines.append(("status", child.stdout))
            return true
        }
        let workers = try await b.coord(["workers", "--json"])
        await workers.wait()
        lines.append(("workers", workers.stdout))
        worker.signal(SIGTERM)
        await worker.wait()
        lines += worker.stderr.split(separator: "\n").map { ("log", String($0)) }
        lines = lines.map { ($0.0, $0.1.trimmingCharacters(in: .newlines)) }
        #expect(try await validate(lines) == ["\(lines.count) checked"])
    }

    @Test("A value of another type, a member that is gone and an outcome of another name are found")
    func mistakes() async throws {
        let good =
            #"{"line":1,"url":"u","outcome":"timeout","reason":null,"http_status":null,"detail":"d","attempts":3,"ended":"2026-01-01T00:00:00Z"}"#
        #expect(try await validate([("failure", good)]) == ["1 checked"])
        for (part, other) in [
            ("\"line\":1", "\"line\":\"1\""), ("\"url\":\"u\",", ""), ("timeout", "Timeout"), ("timeout", "hit"),
            ("\"http_status\":null", "\"http_status\":\"404\""),
        ] {
            let found = try await validate([("failure", good.replacing(part, with: other))])
            #expect(found.count == 2 && found[0].hasPrefix("failure "), "\(other): \(found)")
        }
        let names = PrefetchOutcome.allCases.map { ("outcome", "\"\($0.name)\"") }
        #expect(try await validate(names) == ["\(names.count) checked"])
    }
}

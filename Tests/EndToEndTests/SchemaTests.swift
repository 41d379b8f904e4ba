import Foundation
import Glibc
import Origin
import TestSupport
import Testing

/// What the built programs print as JSON, against docs/schema.json, where a member that it does not have is a mistake too.
@Suite("JSON of the programs", .timeLimit(.minutes(5)))
struct SchemaTests {
    private static let page = URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "../../docs/schema.json"
    )
    .standardized

    /// Names of definitions and lines of JSON: what does not hold, by the well-kept validator of Python.
    private static let validator = """
        import json, sys, jsonschema
        schema = json.load(open(sys.argv[1]))
        jsonschema.Draft202012Validator.check_schema(schema)
        def close(part):
            for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
                close(inner)
            if isinstance(part, dict) and isinstance(part.get("properties"), dict):
                part.setdefault("additionalProperties", False)
        close(schema)
        for line in open(sys.argv[2]):
            name, text = line.rstrip("\\n").split("\\t", 1)
            check = jsonschema.Draft202012Validator({"$ref": "#/$defs/" + name, "$defs": schema["$defs"]})
            errors = list(check.iter_errors(json.loads(text)))
            print(name, len(errors), *(error.message[:200] for error in errors[:3]))
        """

    /// Lines with the definitions that they have to be of.
    private func judged(_ lines: [(name: String, text: String)], _ folder: TemporaryDirectory) async throws -> [String]
    {
        folder.write(Array(lines.map { "\($0.name)\t\($0.text)\n" }.joined().utf8), to: "lines")
        let check = try await ChildProcess(
            "/usr/bin/env", ["python3", "-c", Self.validator, Self.page.path(), folder.path("lines")])
        #expect(await check.wait() == .exited(0), "\(check.stderr)")
        return check.stdout.split(separator: "\n").map(String.init)
    }

    @Test("Every --json of a queue with batches, workers and a cache is valid, and a mistake is found")
    func programs() async throws {
        let b = try await RemoteBatch()
        let origin = try OriginServer()
        let image = GeneratedImage.png(seed: 1, width: 8, height: 8)
        origin.setFallback { $0.path.hasSuffix(".png") ? OriginResponse(body: image) : OriginResponse(status: 404) }
        let (cache, urls) = (b.folder.path("cache"), (0..<3).map { origin.url("/\($0).png") })
        let list = b.list(urls + [origin.url("/none"), "no url"])
        var lines: [(name: String, text: String)] = []
        func note(_ name: String, _ text: String, sourceLocation: SourceLocation = #_sourceLocation) {
            let all = text.split(separator: "\n").filter { $0.first == "{" }
            #expect(!all.isEmpty, "\(name): \(text)", sourceLocation: sourceLocation)
            lines += all.map { (name, String($0)) }
        }
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"),
            ["--redis", b.redis.url, "--cache", cache, "--allow-net", "127.0.0.0/8", "--log-format", "json"])
        let submit = try await b.coord(["submit", list, "--name", "b", "--wait", "--json", "--progress", "json"])
        #expect(await submit.wait() == .exited(3), "\(submit.stderr)")
        note("batch", submit.stdout)
        note("event", submit.stderr)
        note("event", try await b.done(["watch", "b", "--json", "--from-start"], 3).stdout)
        try await b.done(["pause", "--all"])
        note("batch", try await b.done(["submit", list, "--name", "open", "--json"]).stdout)
        let given: [(String, [String])] = [
            ("status", ["status"]), ("status", ["status", "b"]), ("workers", ["workers"]),
            ("failure", ["failures", "b"]),
            ("failure_counts", ["failures", "b", "--by", "cause"]),
            ("failure_counts", ["failures", "b", "--by", "host"]),
            ("why", ["why", origin.url("/none")]), ("why", ["why", urls[0], "--cache", cache]),
            ("why_oldest", ["why", "--oldest", "open"]), ("failed_url", ["blacklist", "list"]), ("fsck", ["fsck"]),
            ("dry_run", ["submit", list, "--dry-run"]), ("doctor", ["doctor"]), ("settings", ["doctor", "--settings"]),
        ]
        for (name, words) in given { note(name, try await b.ended(words + ["--json"]).stdout) }
        // From here on the lines that it skipped are open again.
        note("batch", try await b.done(["retry", "b", "--json"]).stdout)
        note("line", try await b.done(["export", "b", "--format", "jsonl", "--cache", cache]).stdout)
        let (manifest, other) = (b.folder.path("m.jsonl"), b.folder.path("other"))
        try await b.done(["export", "b", "--format", "jsonl", "--cache", cache, "-o", manifest])
        for (name, words) in [
            ("image", ["ls"]), ("cache_summary", ["ls", "--summary"]), ("cache_verify", ["verify"]),
            ("cache_import", ["import", manifest, "--from", "jsonl"]), ("cache_gc", ["gc", "--max-age", "9d"]),
        ] {
            let at = ["--cache", name == "cache_import" ? other : cache, "--json"]
            note(name, try await b.ended(["cache"] + words + at, of: "prefetch-coord").stdout)
        }
        let all = ["cache", "gc", "--max-age", "0", "-v", "--yes", "--json", "--cache", other]
        let swept = try await b.ended(all, of: "prefetch-coord").stdout.split(separator: "\n").map(String.init)
        note("cache_gc_file", swept.dropLast().joined(separator: "\n"))
        note("cache_gc", swept.last ?? "")
        worker.signal(SIGTERM)
        #expect(await worker.wait() == .exited(0))
        note("log", worker.stderr)
        for line in try await judged(lines, b.folder) { #expect(line.hasSuffix(" 0"), "\(line)") }

        let failure = try #require(lines.first { $0.name == "failure" }?.text)
        let bad = [
            ("\"line\":", "\"line\":\"1\",\"x\":"), ("\"url\":", "\"uri\":"), ("httpError", "HttpError"),
            ("httpError", "hit"), ("\"http_status\":404", "\"http_status\":\"404\""), ("{", "{\"more\":1,"),
        ].map { ("failure", failure.replacing($0, with: $1, maxReplacements: 1)) }
        for line in try await judged(bad, b.folder) { #expect(!line.hasSuffix(" 0"), "\(line)") }
    }
}

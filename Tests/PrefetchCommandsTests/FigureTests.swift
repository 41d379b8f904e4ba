import Foundation
import PrefetchModel
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import PrefetchCommands
@testable import Queue

/// Pages that are made from the rows of answers and of settings; `TEST_GOLDEN=write` writes them anew.
@Suite("Rows of answers and settings", .timeLimit(.minutes(5)))
struct FigureTests {
    private static let docs = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "docs")

    /// Compares the part of a page between two texts, or all of it; where it is to be written anew, it is written.
    private func expect(_ part: String, in name: String, after start: String = "", before end: String = "") throws {
        let file = Self.docs.appending(path: name)
        let page = try String(contentsOf: file, encoding: .utf8)
        let from = start.isEmpty ? page.startIndex : try #require(page.range(of: start)).upperBound
        let to = end.isEmpty ? page.endIndex : try #require(page.range(of: end, range: from..<page.endIndex)).lowerBound
        if ProcessInfo.processInfo.environment["TEST_GOLDEN"] == "write" {
            try (page[..<from] + part + page[to...]).write(to: file, atomically: true, encoding: .utf8)
        } else {
            #expect(page[from..<to] == part, "\(name) is not made from the rows: TEST_GOLDEN=write writes it")
        }
    }

    // MARK: docs/schema.json

    /// What commands print, and what that is made of, with its name and a sentence.
    private static let answers: [(type: any Shown.Type, name: String, about: String)] = [
        (BatchAnswer.self, "batch", "run, submit, retry and demo --json; in status --json."),
        (StatusAnswer.self, "status", "status --json."), (WorkersAnswer.self, "workers", "workers --json."),
        (FailureDetail.self, "failure", "A line of failures --json."),
        (
            FailureCounts.self, "failure_counts",
            "failures --by cause --json and failures --by host --json; host is null for invalid URLs, cause that of most URLs of a host."
        ),
        (ExportedLine.self, "line", "A line of export --format jsonl; outcome is null while it is open."),
        (URLFactsText.self, "why", "why --json."), (OldestAnswer.self, "why_oldest", "why --oldest --json."),
        (Blacklist.FailedURL.self, "failed_url", "A line of blacklist list --json."),
        (CacheEntry.self, "image", "A line of cache ls --json."),
        (CacheSummary.self, "cache_summary", "cache ls --summary --json."),
        (CacheTally.self, "cache_verify", "cache verify --json."),
        (CollectAnswer.self, "cache_gc", "cache gc --json; the last line with -v."),
        (SweptImage.self, "cache_gc_file", "A line of cache gc -v --json."),
        (ImageImport.Tally.self, "cache_import", "cache import --json."), (FsckAnswer.self, "fsck", "fsck --json."),
        (DoctorAnswer.self, "doctor", "doctor --json."),
        (Settings.self, "settings", "doctor --settings --json: every setting, with where its value comes from."),
        (
            DryAnswer.self, "dry_run",
            "run --dry-run --json and submit --dry-run --json; cached is null if no cache was named."
        ),
        (
            EventAnswer.self, "event",
            "A line of watch --json and of --progress json: the calls of SDWebImagePrefetcher, and what is said beside them."
        ), (LogLine.self, "log", "A line of prefetch-worker --log-format json."),
        (WorkerRecord.self, "worker", "A worker; its numbers are those of its last heartbeat."),
        (QueueAnswer.self, "queue", "What holds for all workers of a queue."),
        (OpenURL.self, "open_url", "A URL that has not ended."),
        (BatchCache.self, "batch_cache", "A cache that has images of a batch."),
        (
            PrefetchOutcome.self, "outcome",
            "How a URL ended. The first three have an image, all others are skipped; unknown is one of a later version."
        ), (SkippedOutcome.self, "skipped_outcome", "How a URL without an image ended."),
        (
            FailureReason.self, "reason",
            "What tells apart failures with the same outcome; null if that makes no difference or is not known."
        ), (LimitCause.self, "limit_cause", "What holds a worker or a run back."),
        (ImageFormat.self, "format", "By the first bytes of the image."),
        (Moment.self, "time", "A moment in UTC, to the second."),
    ]
    private static let names = Dictionary(uniqueKeysWithValues: answers.map { (ObjectIdentifier($0.type), $0.name) })

    private static func type(_ names: JSONText, _ more: (String, JSONText)...) -> JSONText {
        .object([("type", names)] + more)
    }

    /// JSON Schema (2020-12).
    private static func schema(_ shape: Shape) -> JSONText {
        switch shape {
        case .integer: return type(.string("integer"), ("minimum", .int(0)))
        case .number: return type(.string("number"))
        case .string: return type(.string("string"))
        case .boolean: return type(.string("boolean"))
        case .moment:
            return type(
                .string("string"), ("pattern", .string("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")))
        case .names(let names): return .object([("enum", .array(names.map { .string($0) }))])
        case .constant(let value): return .object([("const", value)])
        case .list(let element): return type(.string("array"), ("items", schema(.type(element))))
        case .any: return .object([])
        case .map(let value): return type(.string("object"), ("additionalProperties", schema(.type(value))))
        case .nullable(let wrapped):
            let some = schema(.type(wrapped))
            guard case .object(let members) = some, members[0].0 != "$ref" else {
                return .object([("anyOf", .array([some, type(.string("null"))]))])
            }
            return .object(
                members.map { name, value in
                    switch (name, value) {
                    case ("enum", .array(let names)): (name, .array(names + [.null]))
                    case ("type", .string): (name, .array([value, .string("null")]))
                    case ("anyOf", .array(let shapes)): (name, .array(shapes + [type(.string("null"))]))
                    default: (name, value)
                    }
                })
        case .either(let shapes): return .object([("anyOf", .array(shapes.map(schema)))])
        case .type(let type):
            guard let name = names[ObjectIdentifier(type)] else { return schema(type.shape) }
            return .object([("$ref", .string("#/$defs/\(name)"))])
        case .object(let members):
            let properties = members.map { member in (member.name, described(schema(member.shape), member.about)) }
            let required = members.filter(\.isRequired).map { JSONText.string($0.name) }
            return type(.string("object"), ("required", .array(required)), ("properties", .object(properties)))
        }
    }

    private static func described(_ schema: JSONText, _ about: String?) -> JSONText {
        guard let about, case .object(let members) = schema else { return schema }
        return .object([("description", .string(about))] + members)
    }

    private static func pretty(_ json: JSONText, _ indent: String = "") -> String {
        let (values, open, close): ([String], String, String)
        switch json {
        case .object(let members):
            (open, close) = ("{", "}")
            values = members.map { "\(JSONText.string($0.0).text): \(pretty($0.1, indent + "  "))" }
        case .array(let elements):
            (open, close) = ("[", "]")
            if case .string? = elements.first { return filled(elements.map(\.text), indent) }
            values = elements.map { pretty($0, indent + "  ") }
        default: return json.text
        }
        let line = open + values.joined(separator: ", ") + close
        guard line.contains("\n") || indent.count + line.count > 140 else { return line }
        return "\(open)\n" + values.map { "\(indent)  \($0)" }.joined(separator: ",\n") + "\n\(indent)\(close)"
    }

    /// As many names in a line as there is room for.
    private static func filled(_ names: [String], _ indent: String) -> String {
        var lines = [""]
        for name in names {
            if indent.count + lines[lines.count - 1].count + name.count > 130 { lines.append("") }
            lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : ", ") + name
        }
        guard lines.count > 1 else { return "[\(lines[0])]" }
        return "[\n\(indent)  \(lines.joined(separator: ",\n\(indent)  "))\n\(indent)]"
    }

    @Test("docs/schema.json has every answer as its rows say")
    func schemaPage() throws {
        let definitions = Self.answers.map { ($0.name, Self.described(Self.schema($0.type.shape), $0.about)) }
        let about =
            "Each command with --json prints one object, or one a line, that is valid against the definition which names it. Members may be added, none is removed; v counts what breaks readers. Sizes are bytes, durations seconds."
        let schema = JSONText.object([
            ("$schema", .string("https://json-schema.org/draft/2020-12/schema")),
            ("title", .string("What prefetch says as JSON")), ("description", .string(about)),
            ("$defs", .object(definitions)),
        ])
        try expect(Self.pretty(schema) + "\n", in: "schema.json")
    }

    // MARK: docs/METRICS.md

    @Test("docs/METRICS.md has a line for each metric, as its help says")
    func metrics() throws {
        var queue = DashFixture.reading(40).queue ?? QueueSnapshot()
        queue.workers = DashFixture.reading(40).snapshot?.workers ?? [:]
        queue.batches = Array(queue.batches.prefix(1))
        queue.batches[0].limits.add(.servers, milliseconds: 1)
        let cache = QueueMetrics.Cache(count: 1, size: 1, free: 1)
        let families = QueueMetrics.families(queue, cache, took: 0)
        let rows = families.map { family in
            let help = family.help.hasSuffix(".") ? String(family.help.dropLast()) : family.help
            return "| `\(family.name)` |\(Self.labels(of: family)) | \(Self.cell(help)) |\n"
        }
        try expect(
            rows.joined(), in: "METRICS.md", after: "| metric | labels | meaning |\n|---|---|---|\n",
            before: "<!-- end -->")
        // Alerts and the dashboard name no other.
        let names = Set(
            families.map(\.name) + ["_bucket", "_sum", "_count"].map { "prefetch_fetch_duration_seconds\($0)" })
        for name in ["alerts.yaml", "grafana.json"] {
            let text = try String(contentsOf: Self.docs.appending(path: name), encoding: .utf8)
            let used = Set(text.matches(of: /prefetch_[a-z_]+/).map { String($0.0) })
            #expect(used.count > 8 && used.subtracting(names) == [], "\(name)")
        }
    }

    /// The labels of a family, with their values if those are two to five.
    private static func labels(of family: MetricFamily) -> String {
        let names = family.samples.first?.labels.map(\.name) ?? []
        let texts = names.map { name in
            let values = family.samples.compactMap { $0.labels.first { $0.name == name }?.value }
            let distinct = values.enumerated().filter { values.firstIndex(of: $1) == $0 }.map(\.element)
            return " `\(name)`" + ((2...5).contains(distinct.count) ? ": \(distinct.joined(separator: ", "))" : "")
        }
        return texts.joined(separator: ",")
    }

    /// The lines of a table that has, behind what the rows say, what somebody has written: more about an option, and the tests that prove it.
    private func table(_ settings: [SettingDescription], in name: String, after start: String) throws {
        let page = try String(contentsOf: Self.docs.appending(path: name), encoding: .utf8)
        let from = try #require(page.range(of: start)).upperBound
        let to = try #require(page.range(of: "<!-- end -->", range: from..<page.endIndex)).lowerBound
        var kept: [String: String] = [:]
        for line in page[from..<to].split(separator: "\n") {
            let cells = line.components(separatedBy: " | ")
            if cells.count > 2 { kept[cells[0]] = cells[2...].joined(separator: " | ") }
        }
        let lines = settings.map { about in
            let cell = "| `\(about.flag)`"
            return "\(cell) | \(about.help) | \(kept[cell] ?? " |  |")\n"
        }
        try expect(lines.joined(), in: name, after: start, before: "<!-- end -->")
    }

    @Test("docs/OPTIONS.md has a line for each setting of a batch, and of a worker")
    func options() throws {
        let batch = BatchOptions.settings.map(\.about).filter { !$0.traits.contains(.library) }
        let head = " -->\n| option | what it does | more | proved by |\n|---|---|---|---|\n"
        try table(batch, in: "OPTIONS.md", after: "rows of settings: batch" + head)
        try table(FetchSettings.settings.map(\.about), in: "OPTIONS.md", after: "rows of settings: worker" + head)
    }

    @Test("docs/SETTINGS.md has a line for each variable of the environment")
    func variables() throws {
        let rows = EnvironmentNames.settings.map { row in
            let names = row.names.map { "`\($0)`" }.joined(separator: ", then ")
            return "| \(names) | \(Self.cell(row.meaning)) | \(row.option.map { "`\($0)`" } ?? "") |\n"
        }
        try expect(
            rows.joined(), in: "SETTINGS.md", after: "| variable | meaning | option |\n|---|---|---|\n",
            before: "\nNetworks are separated by commas.")
    }

    /// A sentence as a cell of a table.
    private static func cell(_ text: String) -> String {
        guard let second = text.dropFirst().first, second.isLowercase else { return text }
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    // MARK: Workers

    @Test("A number of a worker is written, read, joined and shown as its row says")
    func all() throws {
        var (first, second) = (WorkerReport(), WorkerReport())
        for (index, figure) in (WorkerReport.figures + WorkerReport.counts).enumerated() {
            figure.set(&first, index + 2)
            figure.set(&second, 100 - index)
        }
        (first.figures.lacksWork, second.figures.isRefused) = (true, true)
        let fields = Dictionary(first.fields + WorkerReport.counts.map { ($0.name, "\($0.value(first) ?? 0)") }) { $1 }
        #expect(WorkerReport(fields: fields) == first)
        #expect(Set(fields.keys).isSuperset(of: WorkerReport.figures.map(\.name)))
        var joined = WorkerReport()
        joined.join(first)
        joined.join(second)
        for figure in WorkerReport.figures + WorkerReport.counts {
            let (one, other) = (figure.value(first) ?? 0, figure.value(second) ?? 0)
            #expect(
                figure.value(joined) == (figure.about.join == .sum ? one + other : max(one, other)), "\(figure.name)")
        }
        let json = WorkerRecord(id: "w", first, leaseLeft: 9_000).json.text
        for figure in (WorkerReport.figures + WorkerReport.counts).filter({ $0.about.place != .record }) {
            #expect(json.contains("\"\(figure.name)\":\(figure.value(first) ?? 0)"), "\(json)")
        }
    }
}

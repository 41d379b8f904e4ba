import Foundation
import Prefetch
import PrefetchModel
import Queue
import TestSupport
import Testing

@testable import PrefetchCommands

/// Pages that are made from the rows of figures; `PREFETCH_GOLDEN=write` writes those parts anew.
@Suite("Rows of figures", .timeLimit(.minutes(5)))
struct FigureTests {
    private static let docs = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "docs")
    private static let shown = (WorkerReport.figures + WorkerReport.counts).filter { $0.about.place != .record }

    /// Compares the part of a page between two texts; where it is to be written anew, it is written.
    private func expect(_ part: String, in name: String, after start: String, before end: String) throws {
        let file = Self.docs.appending(path: name)
        let page = try String(contentsOf: file, encoding: .utf8)
        let from = try #require(page.range(of: start)).upperBound
        let to = try #require(page.range(of: end, range: from..<page.endIndex)).lowerBound
        if ProcessInfo.processInfo.environment["PREFETCH_GOLDEN"] == "write" {
            try (page[..<from] + part + page[to...]).write(to: file, atomically: true, encoding: .utf8)
        } else {
            #expect(page[from..<to] == part, "\(name) is not made from the rows: PREFETCH_GOLDEN=write writes it")
        }
    }

    @Test("docs/schema.json has the numbers of a worker as its rows say")
    func schema() throws {
        let lines = Self.shown.map { figure in
            let type = figure.about.isOptional ? #"["integer", "null"]"# : #""integer""#
            return
                #"        "\#(figure.name)": {"description": "\#(figure.about.help)", "type": \#(type), "minimum": 0}"#
        }
        try expect(
            lines.joined(separator: ",\n"), in: "schema.json",
            after: "\"worker_figures\": {\n      \"properties\": {\n", before: "\n      }")
        let required = Self.shown.map { "\"\($0.name)\"" }.joined(separator: ", ")
        try expect(
            required, in: "schema.json",
            after:
                "\"description\": \"A worker; its numbers are those of its last heartbeat.\",\n      \"required\": [\n        ",
            before: "\n      ]")
    }

    @Test("docs/METRICS.md has a line for each metric that is made from a row")
    func metrics() throws {
        let rows = Self.shown.compactMap { figure in
            figure.about.metric.map { "| `\($0)` | | \(Self.cell(figure.about.help)) |\n" }
        }
        try expect(
            rows.joined(), in: "METRICS.md", after: "absent if none is |\n", before: "| `prefetch_waiting_names`")
    }

    /// A sentence as a cell of a table.
    private static func cell(_ help: String) -> String {
        let text = help.hasSuffix(".") ? String(help.dropLast()) : help
        guard let second = text.dropFirst().first, second.isLowercase else { return text }
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    @Test("A number is written, read, joined and shown as its row says")
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
        let json = WorkerText.object(WorkerRecord(id: "w", first, leaseLeft: 9_000)).text
        for figure in Self.shown { #expect(json.contains("\"\(figure.name)\":\(figure.value(first) ?? 0)"), "\(json)") }
    }
}

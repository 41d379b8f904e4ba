import Prefetch
import Testing

@testable import PrefetchCommands

@Suite("What resolvers were asked, in words", .timeLimit(.minutes(5)))
struct NameTextTests {
    private func report(_ set: (inout NameReport) -> Void) -> NameReport {
        var report = NameReport()
        set(&report)
        return report
    }

    @Test("A worker's line has the names that it asked for, those that wait, and a silence")
    func lines() {
        #expect(NameReport().line == "")
        #expect(report { $0.queries = 1204 }.line == "1,204 asked")
        let busy = report { ($0.queries, $0.waiting, $0.window) = (1204, 12, 64) }
        #expect(busy.line == "1,204 asked, 12 waiting (64 at once)")
        let silent = report { ($0.queries, $0.waiting, $0.silence) = (5, 3, 7400) }
        #expect(silent.line == "3 waiting, no answer for 7.4 s")
        #expect(silent.json.text.contains(#""silent_seconds":7.4"#))
        #expect(busy.json.text.contains(#""silent_seconds":null"#))
    }

    @Test("A report has a section of them if any were asked")
    func page() {
        let status = BatchStatus(
            id: "urls-7f3a", state: .done, total: 0, counts: PrefetchCounts(), created: 1_800_000_000_000,
            ended: 1_800_000_060_000, at: 1_800_000_070_000)
        var page = BatchPage(snapshot: BatchSnapshot(at: status.at, status: status))
        #expect(!page.page.text.contains("<h2>Names</h2>"))
        page.names = report { ($0.queries, $0.answered, $0.unanswered) = (30, 20, 10) }
        let text = page.page.text
        #expect(text.contains("<h2>Names</h2>") && text.contains("no answer") && !text.contains("resolver failed"))
    }

    @Test("A silent resolver is why a batch does not move, if names wait for it")
    func load() {
        var worker = WorkerReport()
        worker.names = report { ($0.queries, $0.waiting, $0.silence) = (5, 3, 7400) }
        let load = WorkerLoad(["a": .init(id: "a", worker, leaseLeft: 1), "b": .init(id: "b", worker, leaseLeft: 1)])
        #expect(load.report.names?.waiting == 6 && load.report.names?.silence == 7400)
    }
}

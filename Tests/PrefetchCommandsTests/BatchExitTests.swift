import PrefetchModel
import Testing

@testable import Prefetch
@testable import PrefetchCommands
@testable import Queue

@Suite("The end of a batch as an exit code")
struct BatchExitTests {
    private struct Row: Sendable {
        var counts: [PrefetchOutcome: Int]
        var allowed: String?
        var code: Int32
        var state = BatchStatus.State.done
        var endedBy: BatchStatus.Ending?
    }

    private static let rows = [
        Row(counts: [:], code: 0), Row(counts: [.downloaded: 10], code: 0),
        Row(counts: [.hit: 9, .httpError: 1], code: 3), Row(counts: [.hit: 9, .httpError: 1], allowed: "1", code: 0),
        // What was not wanted is no failure, if anything was.
        Row(counts: [.hit: 1, .filtered: 9], code: 0), Row(counts: [.filtered: 10], code: 3),
        Row(counts: [.filtered: 10], allowed: "9", code: 3), Row(counts: [.filtered: 10], allowed: "100%", code: 0),
        Row(counts: [.notModified: 1, .filtered: 8, .refused: 1], code: 3),
        Row(counts: [.downloaded: 1, .filtered: 8, .refused: 1], allowed: "10%", code: 0),
        Row(counts: [.downloaded: 8, .refused: 2], allowed: "10%", code: 3),
        Row(counts: [.filtered: 9, .timeout: 1], allowed: "10%", code: 3),
        Row(counts: [.downloaded: 10], code: 4, state: .cancelled, endedBy: .hand),
        Row(counts: [.downloaded: 9, .filtered: 1], code: 0, state: .cancelled, endedBy: .finishAt),
        Row(counts: [.downloaded: 9, .cancelled: 1], code: 3, state: .cancelled, endedBy: .finishAt),
    ]

    @Test(
        "0 if all that was wanted is there, 3 if some failed or there is no image, 4 if it was cancelled",
        arguments: 0..<15)
    func code(number: Int) throws {
        let row = Self.rows[number]
        #expect(Self.rows.count == 15)
        var counts = PrefetchCounts()
        for (outcome, count) in row.counts { counts[outcome] = count }
        var status = BatchStatus(
            id: "b", state: row.state, total: counts.finished, counts: counts, created: 1, ended: 2, at: 3)
        status.endedBy = row.endedBy
        let allowed = try row.allowed.map { try #require(PrefetchSettings.Share(argument: $0)) }
        #expect(BatchExit.code(status, allowed: allowed) == row.code, "\(row)")
    }
}

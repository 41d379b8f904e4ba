internal import WebImage
internal import PrefetchCommands

struct DemoResult: Sendable {
    struct Difference: Sendable, Equatable {
        /// Line in the list, from 1.
        var line: Int
        var url: String
        var planted: PrefetchOutcome
        /// Nil if it has not ended.
        var found: PrefetchOutcome?

        var text: String {
            "line \(line): \(url): planted \(planted.name), found \(found?.name ?? "no outcome")"
        }
    }

    let differences: [Difference]
    private let count: Int

    init(_ plan: DemoPlan, outcomes: [UInt8]) {
        count = plan.entries.count
        differences = plan.entries.enumerated().compactMap { index, entry in
            let found = index < outcomes.count ? PrefetchOutcome(code: outcomes[index]) : nil
            guard !entry.behaviour.allows(found) else { return nil }
            return Difference(line: index + 1, url: entry.url, planted: entry.behaviour.outcome, found: found)
        }
    }

    var isAsExpected: Bool { differences.isEmpty }

    /// The lines to print: one sentence, or up to twenty differences and their number.
    var lines: [String] {
        guard !isAsExpected else { return ["every outcome as planted."] }
        var lines = differences.prefix(20).map(\.text)
        lines.append("not as planted: \(Wording.count(differences.count)) of \(Wording.count(count)) outcomes.")
        return lines
    }
}

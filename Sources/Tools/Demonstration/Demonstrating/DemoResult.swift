internal import WebImage
internal import PrefetchCommands

/// Whether every URL of a demo ended as expected.
struct DemoResult: Sendable {
    /// A URL that did not.
    struct Difference: Sendable, Equatable {
        /// Of the list, from 1 on.
        var line: Int
        var url: String
        var expected: PrefetchOutcome
        /// nil where it has not ended.
        var found: PrefetchOutcome?

        var text: String {
            "line \(line): \(url): expected \(expected.name), found \(found?.name ?? "no outcome")"
        }
    }

    /// In the order of the list; none if all is as expected.
    let differences: [Difference]
    private let count: Int

    /// Compares a plan with the outcome bytes of its batch, one for each line.
    init(_ plan: DemoPlan, outcomes: [UInt8]) {
        count = plan.entries.count
        differences = plan.entries.enumerated().compactMap { index, entry in
            let found = index < outcomes.count ? PrefetchOutcome(code: outcomes[index]) : nil
            guard !entry.behaviour.allows(found) else { return nil }
            return Difference(line: index + 1, url: entry.url, expected: entry.behaviour.outcome, found: found)
        }
    }

    /// Whether there is no difference.
    var isAsExpected: Bool { differences.isEmpty }

    /// What is printed: one sentence, or the lines that differ, twenty at most.
    var lines: [String] {
        guard !isAsExpected else { return ["all \(Wording.count(count)) outcomes as expected."] }
        var lines = differences.prefix(20).map(\.text)
        lines.append("not as expected: \(Wording.count(differences.count)) of \(Wording.count(count)) outcomes.")
        return lines
    }
}

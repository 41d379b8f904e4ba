internal import WebImage
internal import PrefetchCommands

/// Compares a demo's outcomes with the plan.
struct DemoVerdict: Sendable {
    /// A URL with an unexpected outcome.
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

    /// In list order.
    let differences: [Difference]
    private let count: Int

    /// Compares a plan with the outcome bytes of its batch, one per line.
    init(_ plan: DemoPlan, outcomes: [UInt8]) {
        count = plan.entries.count
        differences = plan.entries.enumerated().compactMap { index, entry in
            let found = index < outcomes.count ? PrefetchOutcome(code: outcomes[index]) : nil
            guard !entry.behaviour.allows(found) else { return nil }
            return Difference(line: index + 1, url: entry.url, planted: entry.behaviour.outcome, found: found)
        }
    }

    var isAsPlanted: Bool { differences.isEmpty }

    /// The lines to print: one sentence, or up to twenty differences and their number.
    var lines: [String] {
        guard !isAsPlanted else { return ["every outcome as planted."] }
        var lines = differences.prefix(20).map(\.text)
        lines.append("not as planted: \(Wording.count(differences.count)) of \(Wording.count(count)) outcomes.")
        return lines
    }
}

internal import Prefetch
internal import WebImage

/// A batch in words: what `run`, `submit --wait` and `status` print for people.
enum BatchText {
    /// The three counts of images, then the skipped by outcome, biggest first.
    static func outcomes(_ counts: PrefetchCounts) -> [String] {
        var lines = [
            "  downloaded \(Wording.count(counts[.downloaded]))   hit \(Wording.count(counts[.hit]))   notModified "
                + Wording.count(counts[.notModified])
        ]
        if counts.skipped > 0 { lines.append("  skipped \(Wording.count(counts.skipped)): \(causes(counts))") }
        return lines
    }

    /// `httpError 50, badImage 50`
    static func causes(_ counts: PrefetchCounts) -> String {
        PrefetchOutcome.allCases.filter { $0.isSkipped && counts[$0] > 0 }
            .sorted { (counts[$0], $1.rawValue) > (counts[$1], $0.rawValue) }
            .map { "\($0.name) \(Wording.count(counts[$0]))" }.joined(separator: ", ")
    }

    /// The summary of an ended batch.
    static func summary(_ status: BatchStatus) -> [String] {
        let seconds = max(status.elapsed, 0.001)
        let counts = status.counts
        let rate = Wording.decimal(Double(counts.finished) / seconds, digits: 0)
        var lines = [
            "\(status.id) \(status.state.rawValue): finished \(Wording.count(counts.finished)) skipped "
                + "\(Wording.count(counts.skipped)) of \(Wording.count(status.total)) in \(Wording.seconds(seconds))"
                + (counts.finished > 0 ? ", \(rate) URLs/s, \(Wording.bytes(counts.bytes)) downloaded" : "")
        ]
        lines += outcomes(counts)
        return lines
    }

    /// One line about a batch on its way.
    static func line(_ status: BatchStatus) -> String {
        var state = status.state.rawValue
        if status.waitsForItsList { state = "waiting for its list" }
        let counts = status.counts
        return "\(status.id)  \(state)  \(Wording.share(counts.finished, of: status.total))  finished "
            + "\(Wording.count(counts.finished)) of \(Wording.count(status.total))  skipped \(Wording.count(counts.skipped))"
            + (counts.skipped > 0 ? " (\(causes(counts)))" : "")
    }
}

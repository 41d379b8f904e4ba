internal import Prefetch
internal import WebImage

/// A member of the blacklist, in words.
enum FailedURLText {
    /// One line, without its end.
    static func line(_ failed: Blacklist.FailedURL) -> String {
        "\(TerminalText.url(failed.url))  \(reason(failed.entry))" + (times(failed.entry).map { "  \($0)" } ?? "")
    }

    /// `httpError 404`, or `by hand`.
    static func reason(_ entry: FailedURLEntry) -> String {
        guard let outcome = entry.outcome else { return "by hand" }
        return outcome.name + (entry.httpStatus.map { " \($0)" } ?? "")
    }

    /// Since when, how often and by which batch; nil if it was added by hand.
    static func times(_ entry: FailedURLEntry) -> String? {
        guard entry.count > 0 else { return nil }
        let span =
            entry.count == 1
            ? "once, \(UTCTime.text(milliseconds: entry.last))"
            : "\(Wording.count(entry.count)) times, first \(UTCTime.text(milliseconds: entry.first)), "
                + "last \(UTCTime.text(milliseconds: entry.last))"
        return span + (entry.batch.isEmpty ? "" : ", by \(TerminalText.escaped(entry.batch))")
    }
}

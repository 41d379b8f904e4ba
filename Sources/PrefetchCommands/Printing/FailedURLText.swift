internal import Prefetch
internal import WebImage

/// A member of the list of failed URLs, in words and as JSON.
enum FailedURLText {
    /// One line, without its end.
    static func line(_ failed: FailedURLList.FailedURL) -> String {
        "\(TerminalText.url(failed.url))  \(reason(failed.entry))" + (times(failed.entry).map { "  \($0)" } ?? "")
    }

    /// `httpError 404`, or `by hand`.
    static func reason(_ entry: FailedURLEntry) -> String {
        guard let outcome = entry.outcome else { return "by hand" }
        return outcome.name + (entry.httpStatus.map { " \($0)" } ?? "")
    }

    /// Since when, how often and by which batch; nil where nobody knows.
    static func times(_ entry: FailedURLEntry) -> String? {
        guard entry.count > 0 else { return nil }
        let span =
            entry.count == 1
            ? "once, \(UTCTime.text(milliseconds: entry.last))"
            : "\(Wording.count(entry.count)) times, first \(UTCTime.text(milliseconds: entry.first)), "
                + "last \(UTCTime.text(milliseconds: entry.last))"
        return span + (entry.batch.isEmpty ? "" : ", by \(TerminalText.escaped(entry.batch))")
    }

    /// What stands beside a URL; null where it was added by hand.
    static func members(_ entry: FailedURLEntry) -> [(String, JSONText)] {
        func time(_ value: Int) -> JSONText { value > 0 ? .string(UTCTime.text(milliseconds: value)) : .null }
        func text(_ value: String) -> JSONText { value.isEmpty ? .null : .string(value) }
        return [
            ("outcome", entry.outcome.map { .string($0.name) } ?? .null),
            ("http_status", entry.httpStatus.map { .int($0) } ?? .null), ("first", time(entry.first)),
            ("last", time(entry.last)), ("count", .int(entry.count)), ("next", time(entry.next)),
            ("batch", text(entry.batch)),
            ("detail", text(ShownURL.text(entry.detail))),
        ]
    }

    /// One line of `blacklist list --json`.
    static func object(_ failed: FailedURLList.FailedURL) -> JSONText {
        .object([("url", .url(failed.url))] + members(failed.entry))
    }
}

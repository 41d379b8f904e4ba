internal import Prefetch
internal import WebImage

/// A line of the dashboard's log: what it has seen happen since it was opened.
struct DashLogLine: Sendable {
    /// How bad it is.
    enum Level: String, Sendable {
        case info = "INFO"
        case good = "OK"
        case warning = "WARN"
        case bad = "ERROR"
    }

    /// Milliseconds since 1970.
    var at: Int
    var level: Level
    var text: String
    /// What it says of skipped URLs; nil of any other line.
    var skipped: Skipped?

    /// How many were skipped since a moment, and why.
    struct Skipped: Sendable {
        /// Milliseconds since 1970.
        var since: Int
        var counts: PrefetchCounts
    }
}

internal import Prefetch
internal import WebImage

/// A line of the dashboard's log of events since it was opened.
struct DashLogLine: Sendable {
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
    var skipped: Skipped?

    struct Skipped: Sendable {
        /// Milliseconds since 1970.
        var since: Int
        var counts: PrefetchCounts
    }
}

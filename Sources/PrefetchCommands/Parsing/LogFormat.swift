internal import Glibc

enum LogFormat: String, CaseIterable, Sendable {
    /// JSON if standard error is not a terminal.
    case auto
    /// `12:41:07 waiting for Redis: connection refused`
    case text
    /// One object per line, for log collectors.
    case json

    var isJSON: Bool { self == .json || self == .auto && isatty(STDERR_FILENO) == 0 }
}

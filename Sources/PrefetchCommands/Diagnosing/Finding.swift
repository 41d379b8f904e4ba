/// A line of `doctor`: what was looked at, how it is, and what to do where it is not well.
struct Finding: Sendable, Equatable {
    /// How it is.
    enum Level: String, Sendable {
        case ok
        /// It works, and something is lost by it.
        case warn
        /// It does not work.
        case fail
    }

    var level: Level
    /// One or two words.
    var subject: String
    var text: String
    /// What to do; empty where nothing is to be done.
    var remedy: String

    init(_ level: Level, _ subject: String, _ text: String, remedy: String = "") {
        (self.level, self.subject, self.text, self.remedy) = (level, subject, text, remedy)
    }

    /// `warn  cache    …`, and below it what to do. Text of it may come from outside.
    var lines: [String] {
        let name = subject + String(repeating: " ", count: max(0, 11 - subject.utf8.count))
        let first = "\(level.rawValue)\(level == .ok ? "  " : "")  \(name)  \(TerminalText.escaped(text))"
        return remedy.isEmpty
            ? [first] : [first, "      \(String(repeating: " ", count: 13))-> \(TerminalText.escaped(remedy))"]
    }

    var object: JSONText {
        .object([
            ("level", .string(level.rawValue)), ("subject", .string(subject)), ("text", .string(text)),
            ("remedy", remedy.isEmpty ? .null : .string(remedy)),
        ])
    }
}

/// A line of `doctor`: a check, its result, and a remedy.
struct Finding: Sendable, Equatable {
    enum Level: String, ShownName {
        case ok
        case warn
        case fail
    }

    var level: Level
    /// One or two words.
    var subject: String
    var text: String
    /// May be empty.
    var remedy: String

    init(_ level: Level, _ subject: String, _ text: String, remedy: String = "") {
        (self.level, self.subject, self.text, self.remedy) = (level, subject, text, remedy)
    }

    /// `warn  cache    …`, with the remedy below. Its text may be external.
    var lines: [String] {
        let name = subject + String(repeating: " ", count: max(0, 11 - subject.utf8.count))
        let first = "\(level.rawValue)\(level == .ok ? "  " : "")  \(name)  \(TerminalText.escaped(text))"
        return remedy.isEmpty
            ? [first] : [first, "      \(String(repeating: " ", count: 13))-> \(TerminalText.escaped(remedy))"]
    }
}

extension Finding: Record {
    static let fields: [Field<Finding>] = [
        Field("level", \.level), Field("subject", \.subject), Field("text", \.text),
        Field("remedy", \.remedy.unlessEmpty),
    ]
}

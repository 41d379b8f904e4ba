package import ArgumentParser

/// What help calls the value of an option. ``UsageError`` knows from it how such a value is written.
extension ArgumentHelp {
    package static func time(_ text: String) -> ArgumentHelp { ArgumentHelp(text, valueName: "time") }
    package static func age(_ text: String) -> ArgumentHelp { ArgumentHelp(text, valueName: "age") }
    package static func size(_ text: String) -> ArgumentHelp { ArgumentHelp(text, valueName: "size") }
    package static func count(_ text: String) -> ArgumentHelp { ArgumentHelp(text, valueName: "n") }
    package static func share(_ text: String) -> ArgumentHelp { ArgumentHelp(text, valueName: "n|n%") }
    package static func file(_ text: String) -> ArgumentHelp { ArgumentHelp(text, valueName: "file") }
    package static func folder(_ text: String) -> ArgumentHelp { ArgumentHelp(text, valueName: "dir") }
    package static func url(_ text: String) -> ArgumentHelp { ArgumentHelp(text, valueName: "url") }
    package static func name(_ text: String) -> ArgumentHelp { ArgumentHelp(text, valueName: "name") }
    package static func value(_ name: String, _ text: String) -> ArgumentHelp { ArgumentHelp(text, valueName: name) }
}

extension CompletionKind {
    /// The batches of the queue that a command finds without options.
    static let batch = CompletionKind.shellCommand(
        #"prefetch-coord status --json 2>/dev/null | grep -o '"v":1,"id":"[^"]*"' | cut -d '"' -f 6"#)
}

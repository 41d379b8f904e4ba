internal import ArgumentParser
internal import Prefetch

/// What a mistyped subcommand may have meant.
enum Suggestion {
    /// The first word that is no subcommand where one has to stand, behind those before it, and what to do; nil where all are, or it is an
    /// option, or the command has none.
    static func forUnknown(_ words: [String], of root: any ParsableCommand.Type) -> (words: String, hint: String)? {
        var command = root
        for (number, word) in words.enumerated() {
            let path = ([root._commandName] + words[..<number]).joined(separator: " ")
            let known = command.configuration.subcommands
            guard let next = known.first(where: { $0._commandName == word || $0.configuration.aliases.contains(word) })
            else {
                // Where one is meant when none is named, only a near miss is a mistake: the word may be that one's.
                let hint = forUnknown(
                    word, of: command, path: path, isSure: command.configuration.defaultSubcommand == nil)
                return hint.map { (words[...number].joined(separator: " "), $0) }
            }
            command = next
        }
        return nil
    }

    private static func forUnknown(
        _ word: String, of root: any ParsableCommand.Type, path: String, isSure: Bool
    ) -> String? {
        let names = root.configuration.subcommands.map { $0._commandName } + ["help"]
        let aliases = root.configuration.subcommands.flatMap { $0.configuration.aliases }
        guard names.count > 1, !word.hasPrefix("-"), !names.contains(word), !aliases.contains(word) else { return nil }
        let closest = names.map { ($0, EditDistance.between($0, word)) }.min { $0.1 < $1.1 }
        if let closest, closest.1 <= 2 { return "did you mean '\(path) \(closest.0)'?" }
        guard isSure else { return nil }
        return "there are \(names.joined(separator: ", ")); see \(path) --help"
    }
}

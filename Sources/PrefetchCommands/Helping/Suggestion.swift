internal import ArgumentParser
internal import Prefetch

/// What a mistyped subcommand may have meant.
enum Suggestion {
    /// What other tools call their commands, and what serves the purpose here.
    private static let foreign: [(names: [String], answer: String)] = [
        (["ls", "list", "ps", "jobs"], "prefetch-coord status lists the batches, prefetch-coord cache ls the images"),
        (["stop", "kill", "abort"], "prefetch-coord cancel ends a batch, prefetch-coord pause holds it"),
        (
            ["start", "download", "fetch", "get"],
            "prefetch-coord run downloads a list, prefetch-coord submit queues it"
        ),
        (["add", "push", "enqueue"], "prefetch-coord submit queues a list"),
        (["delete", "del", "remove"], "prefetch-coord rm removes finished batches, prefetch-coord cache rm images"),
        (
            ["clean", "prune", "purge"],
            "prefetch-coord cache gc removes old images, prefetch-coord rm finished batches"
        ),
        (
            ["log", "logs", "tail", "follow"],
            "prefetch-coord watch follows a batch, prefetch-coord failures says what failed"
        ),
        (["info", "show"], "prefetch-coord status shows a batch, prefetch-coord why explains a URL"),
        (["version"], "prefetch-coord --version prints the version"),
    ]

    /// For the test: the words behind `prefetch-coord` of every answer.
    static var namedCommands: [[String]] {
        foreign.flatMap { _, answer in
            answer.split(separator: ",").map { part in
                let words = part.split(separator: " ").drop { $0 != "prefetch-coord" }.dropFirst().map(String.init)
                return Array(words.prefix(words.first == "cache" ? 2 : 1))
            }
        }
    }

    /// The first word that is not a subcommand where one is required, behind those before it, and what to do; nil where all are, or it is an
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
        if path == "prefetch-coord", let answer = foreign.first(where: { $0.names.contains(word) })?.answer {
            return answer
        }
        let closest = names.map { ($0, EditDistance.between($0, word)) }.min { $0.1 < $1.1 }
        if let closest, closest.1 <= 2 { return "did you mean '\(path) \(closest.0)'?" }
        guard isSure else { return nil }
        return "there are \(names.joined(separator: ", ")); see \(path) --help"
    }
}

package import ArgumentParser
internal import FoundationEssentials
internal import Threading

/// A command with the names it is reached by, `prefetch-coord cache gc`.
package struct CommandPath {
    package let words: [String]
    package let command: any ParsableCommand.Type

    package var text: String { words.joined(separator: " ") }

    /// The deepest command that the words of a command line name.
    package init(_ arguments: [String], of root: any ParsableCommand.Type) {
        var words = [root._commandName]
        var command = root
        for word in arguments {
            guard
                let next = command.configuration.subcommands.first(where: {
                    $0._commandName == word || $0.configuration.aliases.contains(word)
                })
            else { break }
            words.append(next._commandName)
            command = next
        }
        self.words = words
        self.command = command
    }

    init(_ command: any ParsableCommand.Type, named text: String) {
        words = text.split(separator: " ").map(String.init)
        self.command = command
    }

    /// The arguments of the command in the order in which they are declared.
    package var options: [CommandOption] {
        struct Dump: Decodable {
            struct Command: Decodable { var arguments: [CommandOption]? }
            var command: Command
        }
        return commandOptions.withLock { known in
            if let options = known[ObjectIdentifier(command)] { return options }
            let dump = try? JSONDecoder().decode(Dump.self, from: Data(command._dumpHelp().utf8))
            let options = dump?.command.arguments ?? []
            known[ObjectIdentifier(command)] = options
            return options
        }
    }
}

/// The options of each command, once they were asked for.
private let commandOptions = Locked<[ObjectIdentifier: [CommandOption]]>([:])

/// An option, a flag or an argument as swift-argument-parser describes it (`--experimental-dump-help`).
package struct CommandOption: Decodable, Sendable {
    struct Name: Decodable, Sendable {
        var kind: String
        var name: String

        var text: String { (kind == "long" ? "--" : "-") + name }
    }

    var kind: String
    var shouldDisplay: Bool
    var sectionTitle: String?
    var isOptional: Bool
    var isRepeating: Bool
    var allNames: [Name]?
    var valueName: String?
    var defaultValue: String?
    var allValues: [String]?
    var abstract: String?
    var discussion: String?

    enum CodingKeys: String, CodingKey {
        case kind, shouldDisplay, sectionTitle, isOptional, isRepeating, valueName, defaultValue, abstract, discussion
        case allValues
        case allNames = "names"
    }

    /// `-n`, `--workers`; none of a positional argument.
    package var names: [String] { allNames?.map(\.text) ?? [] }

    var isPositional: Bool { kind == "positional" }

    var takesValue: Bool { kind == "option" }
}

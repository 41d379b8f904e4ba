internal import ArgumentParser
internal import Glibc
internal import PrefetchModel

/// The help of a command: `-h` has the options that most people use, `--help` has every one. Its own options come first.
package struct HelpPage {
    package enum Length: Sendable { case short, full }

    /// The options of an option group that `-h` shows; those of the command itself are always there.
    private static let essential: Set<String> = [
        "--redis", "--cache", "--yes", "--priority",
        // The list, and the result.
        "--url-column", "--keep-columns", "--limit", "--dry-run",
        // Images.
        "--resize", "--fit", "--image-format", "--quality", "--min-size", "--max-pixels", "--types",
        "--validate", "--max-size",
        // Requests.
        "--max-concurrent-downloads", "--max-per-host", "--rate-per-host", "--limit-rate", "--tries", "--timeout",
        "--header", "--contact", "--proxy", "--allow-net",
        // The cache, rules of sites, and the end.
        "--refresh-cached", "--retry-failed", "--robots", "--own-host", "--max-failures",
    ]
    private static let labelWidth = 26

    private let path: CommandPath
    private let length: Length
    private let width: Int

    /// * `width`: columns of the terminal; COLUMNS, or what the terminal says, by default. Lines are at most 100 wide.
    package init(_ path: CommandPath, _ length: Length, width: Int? = nil) {
        self.path = path
        self.length = length
        self.width = min(100, max(40, width ?? Self.screenWidth))
    }

    private static var screenWidth: Int {
        if let text = getenv("COLUMNS"), let columns = Int(String(cString: text)), columns > 0 { return columns }
        return isatty(STDOUT_FILENO) == 1 ? Terminal.size(of: STDOUT_FILENO).columns : 80
    }

    package var text: String {
        let configuration = path.command.configuration
        var blocks = ["Usage: " + usage(configuration).hanging(7), paragraphs(configuration.abstract)]
        if !configuration.discussion.isEmpty { blocks.append(paragraphs(configuration.discussion)) }
        let all = path.options.filter(\.shouldDisplay)
        let arguments = all.filter { $0.isPositional }
        if !arguments.isEmpty { blocks.append(section("Arguments", arguments.map(argument))) }
        blocks += commands(configuration)
        let options = all.filter { !$0.isPositional }
        let shown = length == .full ? options : options.filter(Self.isShort)
        blocks += optionSections(shown)
        if shown.count < options.count {
            blocks.append("\(path.text) --help lists all \(options.count) options.")
        }
        return blocks.joined(separator: "\n\n")
    }

    private static func isShort(_ option: CommandOption) -> Bool {
        option.sectionTitle == nil || option.names.contains(where: essential.contains)
    }

    /// The command that prints the options of which a message names the first.
    static func command(_ path: CommandPath, for message: String) -> String {
        let words = message.split { !$0.isLetter && !$0.isNumber && $0 != "-" }
        let named = words.lazy.compactMap { word in
            path.options.first { $0.shouldDisplay && $0.names.contains { $0.hasBytes(of: word) } }
        }
        return path.text + (named.first.map(isShort) == false ? " --help" : " -h")
    }

    // MARK: Blocks

    private func usage(_ configuration: CommandConfiguration) -> String {
        if let usage = configuration.usage { return usage }
        guard configuration.subcommands.isEmpty else { return "\(path.text) <command> [<options>]" }
        let arguments = path.options.filter(\.isPositional).map { option in
            let name = argument(option).label + (option.isRepeating ? " ..." : "")
            return option.isOptional ? "[\(name)]" : name
        }
        return ([path.text] + arguments + ["[<options>]"]).joined(separator: " ")
    }

    private func commands(_ configuration: CommandConfiguration) -> [String] {
        func row(_ command: any ParsableCommand.Type) -> (label: String, text: String) {
            let names = [command._commandName] + command.configuration.aliases
            let isDefault = command == configuration.defaultSubcommand
            return (names.joined(separator: ", ") + (isDefault ? " (default)" : ""), command.configuration.abstract)
        }
        func rows(_ commands: [any ParsableCommand.Type]) -> [(label: String, text: String)] {
            commands.filter { $0.configuration.shouldDisplay }.map(row)
        }
        var blocks = configuration.groupedSubcommands.map { section($0.name, rows($0.subcommands)) }
        let others = rows(configuration.ungroupedSubcommands)
        if !others.isEmpty { blocks.insert(section("Commands", others), at: 0) }
        return blocks
    }

    /// The command's own options, then the groups in the order in which they are declared.
    private func optionSections(_ options: [CommandOption]) -> [String] {
        var titles: [String] = []
        var members: [String: [CommandOption]] = [:]
        for option in options {
            let title = SettingTitles.title(of: option.names, in: option.sectionTitle) ?? "Options"
            if members[title] == nil { titles.append(title) }
            members[title, default: []].append(option)
        }
        if let own = titles.firstIndex(of: "Options") { titles.insert(titles.remove(at: own), at: 0) }
        // The short page has few of each group: one section.
        if length == .short {
            let own = members["Options"] ?? []
            let others = titles.filter { $0 != "Options" }.flatMap { members[$0] ?? [] }
            return own.isEmpty && others.isEmpty ? [] : [section("Options", (own + others).map(option))]
        }
        return titles.map { section($0, (members[$0] ?? []).map(option)) }
    }

    private func argument(_ option: CommandOption) -> (label: String, text: String) {
        ("<\(option.valueName ?? "value")>", description(option))
    }

    private func option(_ option: CommandOption) -> (label: String, text: String) {
        // Short names first, as the manual pages of GNU have it.
        let names = option.names.sorted { ($0.hasPrefix("--") ? 1 : 0) < ($1.hasPrefix("--") ? 1 : 0) }
        let name = option.valueName ?? "value"
        let value = !option.takesValue ? "" : name.hasPrefix("=") ? "[\(name)]" : " <\(name)>"
        return (names.joined(separator: ", ") + value, description(option))
    }

    private func description(_ option: CommandOption) -> String {
        var text = option.abstract ?? ""
        if length == .full, let discussion = option.discussion, !discussion.isEmpty { text += " " + discussion }
        var facts: [String] = []
        let values = option.allValues ?? []
        // Most texts name the values with a word about each.
        if values.contains(where: { !text.contains($0) }) { facts.append("values: \(values.joined(separator: ", "))") }
        if let value = option.defaultValue, !value.isEmpty, option.takesValue, !text.contains("(default") {
            facts.append("default: \(value)")
        }
        return facts.isEmpty ? text : "\(text) (\(facts.joined(separator: "; ")))"
    }

    private func section(_ title: String, _ rows: [(label: String, text: String)]) -> String {
        let lines = rows.flatMap { label, text -> [String] in
            let words = wrapped(text, to: width - Self.labelWidth)
            let indent = String(repeating: " ", count: Self.labelWidth)
            let head = "  " + label
            guard head.count < Self.labelWidth - 1 else { return [head] + words.map { indent + $0 } }
            let first = head + String(repeating: " ", count: Self.labelWidth - head.count) + (words.first ?? "")
            return [first] + words.dropFirst().map { indent + $0 }
        }
        return "\(title):\n" + lines.joined(separator: "\n")
    }

    // MARK: Wrapping

    /// Paragraphs are wrapped; lines that begin with two blanks, the examples, stay as they are.
    private func paragraphs(_ text: String) -> String {
        var lines: [String] = []
        var paragraph: [Substring] = []
        func flush() {
            lines += wrapped(paragraph.joined(separator: " "), to: width)
            paragraph = []
        }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.isEmpty || line.hasPrefix("  ") || line.hasSuffix(":") {
                flush()
                lines.append(String(line))
            } else {
                paragraph.append(line)
            }
        }
        flush()
        return lines.joined(separator: "\n")
    }

    private func wrapped(_ text: String, to width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(whereSeparator: \.isWhitespace) {
            if !line.isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        if !line.isEmpty { lines.append(line) }
        return lines
    }
}

extension String {
    /// Every line but the first moved to the right.
    fileprivate func hanging(_ columns: Int) -> String {
        replacing("\n", with: "\n" + String(repeating: " ", count: columns))
    }
}

internal import ArgumentParser
internal import Prefetch
internal import Threading

/// Settings that a command has as options.
protocol SettingGroup: Sendable {
    associatedtype Root: SettingRecord
    static var settings: [Setting<Root>] { get }
    /// Why settings contradict each other; nil if they do not.
    /// * `given`: the names of those that were given.
    static func contradiction(_ root: Root, _ given: Set<String>) -> String?
}

extension SettingGroup {
    static func contradiction(_ root: Root, _ given: Set<String>) -> String? { nil }
}

/// The options of a group. swift-argument-parser finds the properties of a type by a mirror, and this one's mirror has an option for each row, of which
/// help and completions are made. Command lines are read by ``SettingWords``.
@dynamicMemberLookup
struct SettingOptions<Group: SettingGroup>: ParsableArguments, CustomReflectable, Sendable {
    /// What was given, and the defaults.
    var record = Group.Root()
    /// The names of the settings that were given.
    private(set) var given: Set<String> = []
    private var fault: String?

    init() {}

    init(from decoder: any Decoder) throws {
        // The parser wants to see that there is a key for each option.
        _ = try decoder.container(keyedBy: SettingName.self)
        self.init(SettingWords.taken?[ObjectIdentifier(Group.self)] ?? [:])
    }

    private init(_ words: [String: [String]]) {
        for setting in Group.settings {
            guard let words = words[setting.name] else { continue }
            given.insert(setting.name)
            do throws(WebImageError) { try setting.read(words, into: &record) } catch { fault = fault ?? error.message }
        }
    }

    /// Options that stand alone.
    static func parse(_ words: [String]) throws -> Self {
        let (others, taken) = try SettingWords.take(words, of: groups)
        if let other = others.first { throw ValidationError("Unexpected argument '\(other)'") }
        let options = Self(taken[ObjectIdentifier(Group.self)] ?? [:])
        try options.validate()
        return options
    }

    func validate() throws {
        if let fault = fault ?? Group.contradiction(record, given) { throw ValidationError(fault) }
    }

    subscript<Value>(dynamicMember path: KeyPath<Group.Root, Value>) -> Value { record[keyPath: path] }

    /// What was given, by name.
    var givenWords: [String: [String]] {
        let rows = Group.settings.filter { given.contains($0.name) }
        return Dictionary(uniqueKeysWithValues: rows.map { ($0.name, $0.words(record) ?? []) })
    }

    var customMirror: Mirror {
        if SettingWords.taken != nil { return Mirror(self, children: [:]) }
        // The parser asks for it some dozen times for each command line.
        let options = settingOptions.withLock { options in
            let made = options[ObjectIdentifier(Group.self)] ?? Group.settings.map { ($0.name, Self.option($0.about)) }
            options[ObjectIdentifier(Group.self)] = made
            return made
        }
        return Mirror(self, children: options.map { ($0.name, $0.option as Any) })
    }

    private static func option(_ about: SettingDescription) -> any Sendable {
        let long = NameSpecification.Element.customLong(String(about.flag.dropFirst(2)))
        let short = about.short?.last.map { [NameSpecification.Element.customShort($0)] } ?? []
        let names = NameSpecification(short + [long])
        let help = ArgumentHelp(
            about.help, discussion: about.more, valueName: about.form.placeholder)
        let values = about.form.values
        let completion: CompletionKind? =
            about.traits.contains(.file)
            ? .file() : about.form.placeholder == "dir" ? .directory : values.isEmpty ? nil : .list(values)
        if about.form.placeholder == nil { return Flag<Bool>(wrappedValue: false, name: names, help: help) }
        if about.form.isRepeated {
            return Option<[String]>(
                wrappedValue: [], name: names, parsing: .singleValue, help: help, completion: completion)
        }
        return Option<String?>(name: names, help: help, completion: completion)
    }
}

/// The options of each group, once they were made.
private let settingOptions = Locked<[ObjectIdentifier: [(name: String, option: any Sendable)]]>([:])

private struct SettingName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

// MARK: - Words

/// The words of command lines, of which settings are read by their rows: swift-argument-parser makes each option anew some dozen times for one line.
enum SettingWords {
    /// What was read of each group, by the names of its settings; nil but while the parser reads the rest.
    @TaskLocal fileprivate static var taken: [ObjectIdentifier: [String: [String]]]?

    /// The command that words are parsed into.
    static func parse(_ command: any ParsableCommand.Type, _ words: [String]) throws -> any ParsableCommand {
        // Its own, and those of the one that is meant where no subcommand is named.
        let commands = sequence(first: command) { $0.configuration.defaultSubcommand }
        let groups = commands.flatMap { command in
            Mirror(reflecting: command.init()).children.compactMap { $0.value as? any SettingHolder }
        }
        let (others, taken) = try take(OptionValues.words(words), of: groups.flatMap { type(of: $0).groups })
        return try $taken.withValue(taken) { try command.parseAsRoot(others) }
    }

    /// What the parser says of an error.
    static func message(for error: any Error, of command: any ParsableCommand.Type) -> String {
        $taken.withValue([:]) { command.message(for: error) }
    }

    /// Takes the settings out of words.
    /// - Throws: `ValidationError`, in the parser's words, if one has no value or one too many.
    fileprivate static func take(
        _ words: [String], of groups: [SettingRows]
    ) throws -> (others: [String], taken: [ObjectIdentifier: [String: [String]]]) {
        var (others, taken): ([String], [ObjectIdentifier: [String: [String]]]) = ([], [:])
        var rows: [String: (group: ObjectIdentifier, about: SettingDescription)] = [:]
        for group in groups {
            for about in group.rows {
                for name in [about.flag, about.short].compactMap(\.self) { rows[name] = (group.id, about) }
            }
        }
        var rest = words[...]
        while let word = rest.popFirst() {
            let end = word.utf8.firstIndex(of: UInt8(ascii: "=")) ?? word.endIndex
            guard word != "--", let (group, about) = rows[String(word[..<end])] else {
                others.append(word)
                if word == "--" { return (others + rest, taken) }
                continue
            }
            var value = "yes"
            if end != word.endIndex {
                value = String(word[word.utf8.index(after: end)...])
                guard about.form.placeholder != nil else {
                    throw ValidationError(
                        "The option '\(about.flag)' does not take any value, but '\(value)' was specified.")
                }
            } else if about.form.placeholder != nil {
                guard let next = rest.popFirst(), next == "-" || !next.hasPrefix("-") else {
                    throw ValidationError("Missing value for '\(about.usage)'")
                }
                value = next
            }
            let before = about.form.isRepeated ? taken[group]?[about.name] ?? [] : []
            taken[group, default: [:]][about.name] = before + [value]
        }
        return (others, taken)
    }
}

/// A group of settings, by its type.
struct SettingRows {
    let id: ObjectIdentifier
    let rows: [SettingDescription]
}

/// Options among which are groups of settings.
protocol SettingHolder {
    static var groups: [SettingRows] { get }
}

extension SettingOptions: SettingHolder {
    static var groups: [SettingRows] {
        [SettingRows(id: ObjectIdentifier(Group.self), rows: Group.settings.map(\.about))]
    }
}

extension OptionGroup: SettingHolder where Value: SettingHolder {
    static var groups: [SettingRows] { Value.groups }
}

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

/// The options of a group. swift-argument-parser finds the properties of a type by a mirror, and this one's mirror has an option for each row.
@dynamicMemberLookup
struct SettingOptions<Group: SettingGroup>: ParsableArguments, CustomReflectable, Sendable {
    /// What was given, and the defaults.
    var record = Group.Root()
    /// The names of the settings that were given.
    private(set) var given: Set<String> = []
    private var fault: String?

    init() {}

    init(from decoder: any Decoder) throws {
        let taken = SettingWords.taken[ObjectIdentifier(Group.self)]
        let values = try decoder.container(keyedBy: SettingName.self)
        for setting in Group.settings {
            let words = try taken.map { $0[setting.name] ?? [] } ?? Self.words(of: setting.about, values)
            guard !words.isEmpty else { continue }
            given.insert(setting.name)
            do throws(WebImageError) { try setting.read(words, into: &record) } catch { fault = fault ?? error.message }
        }
    }

    private static func words(
        of about: SettingDescription, _ values: KeyedDecodingContainer<SettingName>
    ) throws -> [String] {
        let name = SettingName(stringValue: about.name)
        if about.form.placeholder == nil { return try values.decode(Bool.self, forKey: name) ? ["yes"] : [] }
        if about.form.isRepeated { return try values.decode([String].self, forKey: name) }
        return try values.decodeIfPresent(String.self, forKey: name).map { [$0] } ?? []
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
        if SettingWords.taken[ObjectIdentifier(Group.self)] != nil { return Mirror(self, children: [:]) }
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

// MARK: - Without the parser

/// Command lines whose options of settings are read by their rows: swift-argument-parser makes each option anew some dozen times for one.
enum SettingWords {
    /// What was read of each group, by the names of its settings.
    @TaskLocal fileprivate static var taken: [ObjectIdentifier: [String: [String]]] = [:]

    /// The command that words are parsed into. What is not written as it has to be is the parser's to say.
    static func parse(_ command: any ParsableCommand.Type, _ words: [String]) throws -> any ParsableCommand {
        let words = OptionValues.words(words)
        guard let (others, taken) = take(words, of: command) else { return try command.parseAsRoot(words) }
        return try $taken.withValue(taken) { try command.parseAsRoot(others) }
    }

    /// What the parser says of an error. Options of settings are in it only where one has no value.
    static func message(for error: any Error, of command: any ParsableCommand.Type) -> String {
        let none = Dictionary(uniqueKeysWithValues: groups(of: command).map { ($0.group, [String: [String]]()) })
        let message = $taken.withValue(none) { command.message(for: error) }
        return message.hasPrefix("Missing value") ? command.message(for: error) : message
    }

    private static func groups(of command: any ParsableCommand.Type) -> [any SettingHolder.Type] {
        Mirror(reflecting: command.init()).children.compactMap { ($0.value as? any SettingHolder).map { type(of: $0) } }
    }

    /// Takes the settings out of words; nil if one has no value or one too many.
    private static func take(
        _ words: [String], of command: any ParsableCommand.Type
    ) -> (others: [String], taken: [ObjectIdentifier: [String: [String]]])? {
        var (others, taken): ([String], [ObjectIdentifier: [String: [String]]]) = ([], [:])
        var rows: [String: (group: ObjectIdentifier, about: SettingDescription)] = [:]
        for group in groups(of: command) {
            taken[group.group] = [:]
            for about in group.rows {
                for name in [about.flag, about.short].compactMap(\.self) { rows[name] = (group.group, about) }
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
            let (takesValue, hasValue) = (about.form.placeholder != nil, end != word.endIndex)
            guard takesValue || !hasValue else { return nil }
            var value = "yes"
            if hasValue {
                value = String(word[word.utf8.index(after: end)...])
            } else if takesValue {
                guard let next = rest.popFirst(), next == "-" || !next.hasPrefix("-") else { return nil }
                value = next
            }
            let before = about.form.isRepeated ? taken[group]?[about.name] ?? [] : []
            taken[group]?[about.name] = before + [value]
        }
        return (others, taken)
    }
}

/// A group of options of settings, by its type.
private protocol SettingHolder {
    static var group: ObjectIdentifier { get }
    static var rows: [SettingDescription] { get }
}

extension SettingOptions: SettingHolder {
    fileprivate static var group: ObjectIdentifier { ObjectIdentifier(Group.self) }
    fileprivate static var rows: [SettingDescription] { Group.settings.map(\.about) }
}

extension OptionGroup: SettingHolder where Value: SettingHolder {
    fileprivate static var group: ObjectIdentifier { Value.group }
    fileprivate static var rows: [SettingDescription] { Value.rows }
}

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
struct SettingOptions<Group: SettingGroup>: ParsableArguments, CustomReflectable, Sendable {
    /// What was given, and the defaults.
    var record = Group.Root()
    /// The names of the settings that were given.
    private(set) var given: Set<String> = []
    private var fault: String?

    init() {}

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: SettingName.self)
        for setting in Group.settings {
            let (form, name) = (setting.about.form, SettingName(stringValue: setting.name))
            let words: [String] =
                if form.placeholder == nil {
                    try values.decode(Bool.self, forKey: name) ? ["yes"] : []
                } else if form.isRepeated {
                    try values.decode([String].self, forKey: name)
                } else {
                    try values.decodeIfPresent(String.self, forKey: name).map { [$0] } ?? []
                }
            guard !words.isEmpty else { continue }
            given.insert(setting.name)
            do throws(WebImageError) { try setting.read(words, into: &record) } catch { fault = fault ?? error.message }
        }
    }

    func validate() throws {
        if let fault = fault ?? Group.contradiction(record, given) { throw ValidationError(fault) }
    }

    /// What was given, by name.
    var words: [String: [String]] {
        let rows = Group.settings.filter { given.contains($0.name) }
        return Dictionary(uniqueKeysWithValues: rows.map { ($0.name, $0.words(record) ?? []) })
    }

    var customMirror: Mirror {
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
            about.traits.contains(.file) ? .file() : values.isEmpty ? nil : .list(values)
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

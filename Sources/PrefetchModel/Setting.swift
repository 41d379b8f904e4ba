/// A setting of a record: the option that sets it, how its value is written, and what it does. Command lines and their help, variables of the
/// environment, the record in Redis, what tells two records apart, the changes of `retry` and `set`, and the tables of `docs/OPTIONS.md` are made
/// from its row.
package struct Setting<Root>: Sendable {
    package private(set) var about: SettingDescription
    /// As it would be given; nil if it is not set.
    package let words: @Sendable (Root) -> [String]?
    /// Takes the value of another record.
    package let copy: @Sendable (_ from: Root, _ to: inout Root) -> Void
    private let put: @Sendable ([String], inout Root) -> SettingFault?

    package var name: String { about.name }

    private init(
        _ about: SettingDescription, _ words: @escaping @Sendable (Root) -> [String]?,
        _ copy: @escaping @Sendable (Root, inout Root) -> Void,
        _ put: @escaping @Sendable ([String], inout Root) -> SettingFault?
    ) {
        (self.about, self.words, self.copy, self.put) = (about, words, copy, put)
    }

    /// A value that is nil unless it is given.
    /// * `flag`: `--header`, or `-H, --header`.
    /// * `usual`: the default, for people.
    package init<Value>(
        _ flag: String, _ path: any WritableKeyPath<Root, Value?> & Sendable, _ kind: SettingKind<Value>,
        is traits: SettingTraits = [], usual: String? = nil, _ help: String, more: String = "", foreign: [String] = []
    ) {
        self.init(
            SettingDescription(flag, kind.form, traits, usual, help, more, foreign),
            { $0[keyPath: path].map(kind.words) }, { $1[keyPath: path] = $0[keyPath: path] },
            { words, root in kind.read(words, into: &root) { $0[keyPath: path] = $1 } })
    }

    /// A value that has a default.
    package init<Value>(
        _ flag: String, _ path: any WritableKeyPath<Root, Value> & Sendable, _ kind: SettingKind<Value>,
        is traits: SettingTraits = [], usual: String? = nil, _ help: String, more: String = "", foreign: [String] = []
    ) where Root: SettingRecord {
        let other = kind.form.placeholder == nil ? nil : kind.words(Root()[keyPath: path]).joined(separator: ",")
        self.init(
            SettingDescription(flag, kind.form, traits, usual ?? (other == "" ? nil : other), help, more, foreign),
            { $0[keyPath: path] == Root()[keyPath: path] ? nil : kind.words($0[keyPath: path]) },
            { $1[keyPath: path] = $0[keyPath: path] },
            { words, root in kind.read(words, into: &root) { $0[keyPath: path] = $1 } })
    }

    /// The setting as one of a larger record.
    package func inside<Whole>(_ part: any WritableKeyPath<Whole, Root> & Sendable) -> Setting<Whole> {
        let (words, copy, put) = (words, copy, put)
        return Setting<Whole>(
            about, { words($0[keyPath: part]) }, { copy($0[keyPath: part], &$1[keyPath: part]) },
            { put($0, &$1[keyPath: part]) })
    }

    /// Sets it as it was given.
    /// * `subject`: what gave it, if not the option.
    /// - Throws: `invalidConfiguration` with the option and what it takes; the record is as before then.
    package func read(_ words: [String], into root: inout Root, subject: String? = nil) throws(WebImageError) {
        guard let fault = put(words, &root) else { return }
        throw WebImageError(.invalidConfiguration, about.message(fault, subject))
    }

    /// Sets it as it was given, if that can be used.
    fileprivate func take(_ words: [String], into root: inout Root) -> Bool { put(words, &root) == nil }

    /// Its value for people, or its default.
    package func shown(_ root: Root) -> String { text(root) ?? about.usual ?? "not given" }

    /// Its value for people; nil if it is not set.
    package func text(_ root: Root) -> String? { words(root).map(about.text) }
}

/// A record whose settings have rows.
package protocol SettingRecord: Sendable, Equatable {
    init()
    static var settings: [Setting<Self>] { get }
}

extension SettingRecord {
    /// What is set, as it would be given, by name.
    package var words: [String: [String]] {
        var all: [String: [String]] = [:]
        for setting in Self.settings where !setting.about.traits.contains(.alias) {
            all[setting.name] = setting.words(self)
        }
        return all
    }

    /// A record of words. Names that it does not know and words that cannot be used are as if they were not there: anybody may have written them.
    package init(words: [String: [String]]) {
        self.init()
        for setting in Self.settings {
            guard let given = words[setting.name], !setting.take(given, into: &self) else { continue }
            var scratch = Self()
            _ = setting.take(given.filter { setting.take([$0], into: &scratch) }, into: &self)
        }
    }

    /// A copy with some settings of another record.
    package func taking(_ names: Set<String>, of other: Self) -> Self {
        var all = self
        for setting in Self.settings where names.contains(setting.name) { setting.copy(other, &all) }
        return all
    }

    /// The settings in which two differ, for messages.
    package func differences(from other: Self) -> [String] {
        Self.settings.compactMap { setting in
            guard !setting.about.traits.contains(.alias), setting.words(self) != setting.words(other) else {
                return nil
            }
            return "\(setting.about.flag) \(setting.shown(self)), was \(setting.shown(other))"
        }
    }

    /// - Throws: `invalidConfiguration` where a value is one that no command would take.
    package func check() throws(WebImageError) {
        var scratch = self
        for setting in Self.settings {
            if let words = setting.words(self) { try setting.read(words, into: &scratch) }
        }
    }
}

/// What a setting is, whatever has it.
package struct SettingDescription: Sendable {
    /// `--max-per-host`.
    package let flag: String
    /// Its name in records and in JSON: `max_per_host`.
    package let name: String
    /// `-H`.
    package let short: String?
    package let form: SettingForm
    package let traits: SettingTraits
    /// One or two sentences.
    package let sentence: String
    /// Its default, for people; nil if there is none to speak of.
    package let usual: String?
    /// What the full help adds.
    package let more: String
    /// What other tools call it.
    package let foreign: [String]
    /// The title above it in help.
    package fileprivate(set) var section = ""

    fileprivate init(
        _ flag: String, _ form: SettingForm, _ traits: SettingTraits, _ usual: String?, _ help: String, _ more: String,
        _ foreign: [String]
    ) {
        let names = flag.split(separator: ",").map { String($0.drop { $0 == " " }) }
        (self.flag, short) = (names.last ?? flag, names.count > 1 ? names[0] : nil)
        name = String(self.flag.dropFirst(2).map { $0 == "-" ? "_" : $0 })
        (self.form, self.traits, self.more, self.foreign) = (form, traits, more, foreign)
        (sentence, self.usual) = (help, usual)
    }

    /// The sentence and the default.
    package var help: String { usual.map { "\(sentence) (default: \($0))" } ?? sentence }

    /// The variable of the environment that sets it, where it has the trait.
    package var variable: String { "PREFETCH_" + name.uppercased() }

    /// The option with what its value is called: `--timeout <time>`.
    package var usage: String { form.placeholder.map { "\(flag) <\($0)>" } ?? flag }

    func text(_ words: [String]) -> String {
        // Names only: values may be secret.
        (traits.contains(.secret) ? words.map { String($0.prefix { $0 != ":" }) } : words).joined(separator: ",")
    }

    func message(_ fault: SettingFault, _ subject: String?) -> String {
        switch fault {
        // As swift-argument-parser says it.
        case .unreadable(let word): "The value '\(word)' is invalid for '\(subject ?? usage)'"
        case .rule(let rule, let word):
            "\(subject ?? flag) \(rule)"
                + (traits.contains(.secret) ? "" : ", not '\(word)'" + EditDistance.guess(word, among: form.values))
        case .message(let message): "\(subject ?? flag): \(message)"
        }
    }
}

extension Array {
    /// Rows under a title of the help.
    package func section<Root>(_ title: String) -> [Setting<Root>] where Element == Setting<Root> {
        map { $0.under(title) }
    }
}

extension Setting {
    fileprivate func under(_ title: String) -> Setting {
        var all = self
        all.about.section = title
        return all
    }
}

package struct SettingTraits: OptionSet, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    /// `set` changes it while its batch runs.
    package static let live = SettingTraits(rawValue: 1)
    /// Its words are not shown.
    package static let secret = SettingTraits(rawValue: 2)
    /// Another setting has its value, too.
    package static let alias = SettingTraits(rawValue: 4)
    /// No command has it.
    package static let library = SettingTraits(rawValue: 8)
    /// Of a batch in a queue with others: of `submit` alone.
    package static let queue = SettingTraits(rawValue: 16)
    /// Names a file, or a folder.
    package static let file = SettingTraits(rawValue: 32)
    /// Of `prefetch-worker` alone: the workers of a run have the default.
    package static let process = SettingTraits(rawValue: 64)
    /// A variable of the environment has it, too: `PREFETCH_LOG_FORMAT`.
    package static let variable = SettingTraits(rawValue: 256)
    /// How a batch is kept and queued: two that differ in nothing else do the same work.
    package static let handling = SettingTraits(rawValue: 128)
}

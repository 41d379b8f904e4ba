/// How the values of a setting are written.
package struct SettingKind<Value: Sendable & Equatable>: Sendable {
    let form: SettingForm
    let words: @Sendable (Value) -> [String]
    private let parse: @Sendable ([String]) -> Reading

    enum Reading {
        case value(Value)
        case fault(SettingFault)
    }

    private init(
        _ form: SettingForm, _ words: @escaping @Sendable (Value) -> [String],
        _ parse: @escaping @Sendable ([String]) -> Reading
    ) {
        (self.form, self.words, self.parse) = (form, words, parse)
    }

    func read<Root>(_ words: [String], into root: inout Root, _ set: (inout Root, Value) -> Void) -> SettingFault? {
        switch parse(words) {
        case .value(let value): set(&root, value)
        case .fault(let fault): return fault
        }
        return nil
    }

    /// A value of one word.
    /// * `rule`: what is said of another word, behind the option; nil: how values of this kind are written.
    package init(
        _ placeholder: String, values: [String] = [], rule: String? = nil,
        _ read: @escaping @Sendable (String) -> Value?, _ text: @escaping @Sendable (Value) -> String
    ) {
        self.init(SettingForm(placeholder: placeholder, values: values), { [text($0)] }) { words in
            let word = words.last ?? ""
            return read(word).map { .value($0) }
                ?? .fault(rule.map { .rule($0, word) } ?? .unreadable(word))
        }
    }

    /// A value of one word.
    /// * `reading`: throws what is wrong with it.
    package init(
        _ placeholder: String, reading: @escaping @Sendable (String) throws(WebImageError) -> Value,
        _ text: @escaping @Sendable (Value) -> String
    ) {
        self.init(SettingForm(placeholder: placeholder), { [text($0)] }) { words in
            do throws(WebImageError) { return .value(try reading(words.last ?? "")) } catch {
                return .fault(.message(error.message))
            }
        }
    }

    /// A value within a range.
    private init(
        _ placeholder: String, _ range: ClosedRange<Value>, _ noun: String,
        _ read: @escaping @Sendable (String) -> Value?, _ text: @escaping @Sendable (Value) -> String
    ) where Value: Comparable {
        self.init(SettingForm(placeholder: placeholder), { [text($0)] }) { words in
            let word = words.last ?? ""
            guard let value = read(word) else { return .fault(.unreadable(word)) }
            guard !range.contains(value) else { return .value(value) }
            let least = text(range.lowerBound)
            let isOpen = (range.upperBound as? Int) == .max
            let bounds = isOpen ? "of at least \(least)" : "from \(least) to \(text(range.upperBound))"
            return .fault(.rule("is \(noun) \(bounds)", word))
        }
    }
}

/// What is wrong with words.
package enum SettingFault: Sendable {
    case unreadable(String)
    /// The rule, and the word that breaks it.
    case rule(String, String)
    case message(String)
}

/// What a command line has to know of a setting.
package struct SettingForm: Sendable {
    /// What help calls the value; nil: it takes none.
    package var placeholder: String?
    /// All values, where they are a few words.
    package var values: [String] = []
    /// Whether it can be given several times.
    package var isRepeated = false
}

extension SettingKind where Value == Int {
    package static func count(_ range: ClosedRange<Int>, _ placeholder: String = "n") -> SettingKind {
        SettingKind(placeholder, range, "a number", { Int($0) }, { "\($0)" })
    }

    package static func size(_ range: ClosedRange<Int>) -> SettingKind {
        SettingKind("size", range, "a size", { ByteSize(argument: $0)?.bytes }, { "\(ByteSize(bytes: $0))" })
    }

    package static func pixels(_ range: ClosedRange<Int>) -> SettingKind {
        SettingKind(
            "n", range, "a number of pixels", { PixelCount(argument: $0)?.count }, { "\(PixelCount(count: $0))" })
    }
}

extension SettingKind where Value == Double {
    package static func number(_ range: ClosedRange<Double>, _ placeholder: String = "n") -> SettingKind {
        SettingKind(placeholder, range, "a number", { Double($0) }) {
            $0 == $0.rounded() && abs($0) < 1e15 ? "\(Int($0))" : "\($0)"
        }
    }

    /// Seconds.
    package static func time(_ range: ClosedRange<Double>) -> SettingKind {
        SettingKind("time", range, "a time", { TimeSpan(argument: $0)?.seconds }, { "\(TimeSpan(seconds: $0))" })
    }

    /// Seconds, and a word with a unit.
    package static var age: SettingKind {
        SettingKind("age", { Age(argument: $0)?.seconds }, { "\(Age(seconds: $0))" })
    }
}

extension SettingKind where Value == Bool {
    package static var flag: SettingKind { flag(true) }

    /// * `on`: the value if it is given.
    package static func flag(_ on: Bool) -> SettingKind {
        SettingKind(SettingForm(), { [$0 == on ? "yes" : "no"] }) { words in
            ["yes", "no"].contains(words.last)
                ? .value((words.last == "yes") == on) : .fault(.unreadable(words.last ?? ""))
        }
    }
}

extension SettingKind where Value: CaseIterable {
    /// One of a few words.
    package static func choice(
        _ placeholder: String, _ text: @escaping @Sendable (Value) -> String
    ) -> SettingKind {
        let names = Value.allCases.map(text)
        let all =
            names.count > 1 ? names.dropLast().joined(separator: ", ") + " or " + names[names.count - 1] : names[0]
        return SettingKind(
            placeholder, values: names, rule: "is \(all)", { word in Value.allCases.first { text($0) == word } }, text)
    }
}

extension SettingKind where Value: CaseIterable & RawRepresentable<String> {
    package static func choice(_ placeholder: String) -> SettingKind { choice(placeholder) { $0.rawValue } }
}

extension SettingKind where Value == String {
    package static func text(
        _ placeholder: String, rule: String? = nil, where isFine: @escaping @Sendable (String) -> Bool = { _ in true }
    ) -> SettingKind {
        SettingKind(placeholder, rule: rule, { isFine($0) ? $0 : nil }, { $0 })
    }

    package static var folder: SettingKind { text("dir", rule: "needs a folder") { !$0.isEmpty } }
}

extension SettingKind where Value == [String] {
    /// * `separator`: also between words of one option.
    /// * `most`: how many there may be, and how many bytes in all.
    package static func texts(
        _ placeholder: String, separator: Character? = nil, most: Int = .max, mostBytes: Int = .max,
        rule: String? = nil,
        where isFine: @escaping @Sendable (String) -> Bool = { _ in true }
    ) -> SettingKind {
        let form = SettingForm(placeholder: placeholder, isRepeated: separator == nil)
        return SettingKind(form, { $0 }) { words in
            let all =
                separator.map { separator in
                    words.flatMap { $0.split(separator: separator, omittingEmptySubsequences: false).map(String.init) }
                } ?? words
            if let wrong = all.first(where: { !isFine($0) }) {
                return .fault(rule.map { .rule($0, wrong) } ?? .unreadable(wrong))
            }
            guard all.count <= most else { return .fault(.message("it can be given \(most) times")) }
            guard all.reduce(0, { $0 + $1.utf8.count }) <= mostBytes else {
                return .fault(.message("it takes \(mostBytes) bytes in all"))
            }
            return .value(all)
        }
    }

    /// Texts of which each is read by itself.
    /// * `most`: how many there may be.
    /// * `check`: throws what is wrong with one.
    package static func texts(
        _ placeholder: String, most: Int, check: @escaping @Sendable (String) throws(WebImageError) -> Void
    ) -> SettingKind {
        SettingKind(SettingForm(placeholder: placeholder, isRepeated: true), { $0 }) { words in
            guard words.count <= most else { return .fault(.message("it can be given \(most) times")) }
            do throws(WebImageError) { for word in words { try check(word) } } catch {
                return .fault(.message(error.message))
            }
            return .value(words)
        }
    }
}

extension SettingKind {
    /// A value of words between commas.
    /// * `read`: throws what is wrong with them.
    package static func list(
        _ placeholder: String, _ read: @escaping @Sendable ([String]) throws(WebImageError) -> Value,
        _ names: @escaping @Sendable (Value) -> [String]
    ) -> SettingKind {
        SettingKind(SettingForm(placeholder: placeholder), names) { words in
            let all = words.flatMap { $0.split(separator: ",").map { $0.filter { $0 != " " } } }
            do throws(WebImageError) { return .value(try read(all)) } catch {
                return .fault(.message(error.message))
            }
        }
    }
}

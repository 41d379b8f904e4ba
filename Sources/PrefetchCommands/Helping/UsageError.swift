internal import ArgumentParser
internal import Prefetch

/// A command line that cannot be used, in the two lines that every error has.
struct UsageError {
    let message: String
    let hint: String

    /// * `message`: of swift-argument-parser, or of a `ValidationError`.
    /// * `others`: commands that may have the option this one has not.
    init(
        _ message: String, _ arguments: [String], of root: any ParsableCommand.Type, others: [CommandPath] = []
    ) {
        let path = CommandPath(arguments, of: root)
        let help = "\(HelpPage.command(path, for: message)) lists the options"
        if let name = Self.quoted(message, after: "Unknown option ") {
            self.message = "unknown option \(name)"
            hint = Self.hint(forUnknown: name, path, others) ?? help
        } else if let name = Self.quoted(message, after: "Missing expected argument ") {
            self.message = "\(name) is missing"
            hint =
                "usage: "
                + (path.command.configuration.usage?.split(separator: "\n").first.map(String.init) ?? path.text)
        } else if let option = Self.quoted(message, after: "Missing value for ") {
            self.message = "\(option) needs a value"
            hint = help
        } else if message.hasPrefix("The value '"), let option = Self.quoted(message, after: "' is invalid for ") {
            let value = message.dropFirst("The value '".count).prefix { $0 != "'" }
            self.message = "'\(value)' is not a valid value of \(option)"
            hint = Self.format(of: option) ?? Self.values(of: option, path, for: String(value)) ?? help
        } else {
            let first = message.split(separator: "\n").first.map(String.init) ?? message
            self.message = Self.lowercasedStart(first)
            hint = help
        }
    }

    /// `'--x <y>'` behind a phrase, without its quotes.
    private static func quoted(_ message: String, after phrase: String) -> String? {
        guard let range = message.firstRange(of: phrase + "'") else { return nil }
        return String(message[range.upperBound...].prefix { $0 != "'" })
    }

    private static func lowercasedStart(_ text: String) -> String {
        // Not a name such as PREFETCH_PROGRESS.
        let second = text.dropFirst().first
        guard second?.isUppercase != true else { return text }
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    private static let age = "an age is a number with its unit, ms, s, m, h, d or w"

    /// How a time or a size is written.
    private static func format(of option: String) -> String? {
        if option.hasSuffix("<time>") {
            return "a time is a number with ms, s, m, h, d or w: 500ms, 10s, 2h; seconds without a unit"
        }
        if option.hasSuffix("<age>") { return "\(age): 12h, 7d, 2w" }
        if option.hasSuffix("<age|list>") { return "\(age), for all reasons or for each: 12h; 404=7d,badImage=1d" }
        if option.hasSuffix("<size>") {
            return "a size is a number of bytes with K, M, G, KiB, MiB, MB, ...: 500k, 64MiB, 2.5MB"
        }
        if option.hasSuffix("<wxh>") {
            return "a size is a width and a height of 1 to 32768 pixels: 256x192, or 256 for both"
        }
        if option.hasSuffix("<n|n%>") { return "a number of URLs, or a share such as 1%" }
        return nil
    }

    private static func values(of option: String, _ path: CommandPath, for value: String) -> String? {
        let names = option.split { $0 == " " || $0 == "," }.map(String.init)
        guard let known = path.options.first(where: { !$0.names.filter(names.contains).isEmpty }) else { return nil }
        if let values = known.allValues, !values.isEmpty {
            let closest = values.map { ($0, EditDistance.between($0, value)) }.min { $0.1 < $1.1 }
            let guess = closest.flatMap { $0.1 <= 2 && $0.1 < $0.0.count ? "did you mean \($0.0)? " : nil } ?? ""
            return "\(guess)one of \(values.joined(separator: ", "))"
        }
        return known.abstract
    }

    private static func hint(forUnknown name: String, _ path: CommandPath, _ others: [CommandPath]) -> String? {
        let known = Set(path.options.filter(\.shouldDisplay).flatMap(\.names))
        var elsewhere: [String: String] = [:]
        for other in others.reversed() {
            for name in other.options.filter(\.shouldDisplay).flatMap(\.names) { elsewhere[name] = other.text }
        }
        if let answer = ForeignOptions.hint(for: name, known: known, elsewhere: elsewhere) { return answer }
        if let place = elsewhere[name] { return "\(name) is an option of \(place)" }
        guard name.hasPrefix("--") else { return nil }
        // A name of three letters is two edits away from most others.
        let most = name.count >= 7 ? 2 : 1
        let closest = known.filter { $0.hasPrefix("--") }.map { ($0, EditDistance.between($0, name)) }
            .min { ($0.1, $0.0) < ($1.1, $1.0) }
        guard let closest, closest.1 <= most else { return nil }
        return "did you mean \(closest.0)?"
    }
}

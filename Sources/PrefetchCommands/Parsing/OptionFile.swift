internal import FoundationEssentials
internal import Prefetch

/// The files that options name.
enum OptionFile {
    /// Reads the lines of an option that is given several times; each is a line itself or `@FILE`, a file of them.
    /// * `isLine`: whether a line can be used.
    /// - Throws: `configuration` with the file, and the number of the line that cannot be used, but not its text.
    static func lines(
        _ words: [String], _ option: String, wants form: String, where isLine: (String) -> Bool
    ) throws(PrefetchError) -> [String] {
        var all: [String] = []
        for word in words {
            guard word.hasPrefix("@") else {
                all.append(word)
                continue
            }
            let file = String(word.dropFirst())
            let lines = try text(of: file).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            for (index, line) in lines.enumerated() where !line.allSatisfy(\.isWhitespace) {
                guard isLine(String(line)) else {
                    throw PrefetchError(
                        .configuration, "line \(index + 1) of \(file) is not '\(form)'",
                        hint: "\(option) @FILE has one '\(form)' per line")
                }
                all.append(String(line))
            }
        }
        return all
    }

    /// The text itself, or the first line of the file that `@FILE` names.
    static func line(_ text: String) throws(PrefetchError) -> String {
        guard text.hasPrefix("@") else { return text }
        return String(try Self.text(of: String(text.dropFirst())).prefix { !$0.isNewline })
    }

    /// The whole of a file.
    static func text(of file: String) throws(PrefetchError) -> String {
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
            throw PrefetchError(
                .configuration, "cannot read \(file)", hint: "give a file of text that this user may read")
        }
        return text
    }
}

internal import ArgumentParser

/// What a mistyped subcommand may have meant.
enum Suggestion {
    /// What to do where a word is no subcommand; nil where it is one, or an option, or the program has none.
    static func forUnknown(_ word: String, of root: any ParsableCommand.Type) -> String? {
        let names = root.configuration.subcommands.map { $0._commandName } + ["help"]
        let aliases = root.configuration.subcommands.flatMap { $0.configuration.aliases }
        guard names.count > 1, !word.hasPrefix("-"), !names.contains(word), !aliases.contains(word) else { return nil }
        let closest = names.map { ($0, distance($0, word)) }.min { $0.1 < $1.1 }
        if let closest, closest.1 <= 2 { return "did you mean '\(root._commandName) \(closest.0)'?" }
        return "there are \(names.joined(separator: ", ")); see \(root._commandName) --help"
    }

    /// Letters to add, drop, change or swap (optimal string alignment).
    static func distance(_ first: String, _ second: String) -> Int {
        let (a, b) = (Array(first), Array(second))
        var rows = [Array(0...b.count)]
        for i in 0..<a.count {
            var row = [i + 1]
            for j in 0..<b.count {
                var best = min(rows[i][j] + (a[i] == b[j] ? 0 : 1), rows[i][j + 1] + 1, row[j] + 1)
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, rows[i - 1][j - 1] + 1) }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[a.count][b.count]
    }
}

package enum EditDistance {
    /// Number of insertions, deletions, substitutions and swaps (optimal string alignment).
    package static func between(_ first: String, _ second: String) -> Int {
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

    /// `; did you mean 'x'?` for a word that is nearly one of those that are known; nothing otherwise.
    package static func guess(_ name: String, among known: [String]) -> String {
        let nearest = known.map { ($0, between($0, name.lowercased())) }.min { $0.1 < $1.1 }
        guard let (word, distance) = nearest, distance <= max(1, min(3, word.count / 3)) else { return "" }
        return "; did you mean '\(word)'?"
    }
}

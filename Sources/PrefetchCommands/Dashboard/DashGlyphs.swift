internal import Prefetch

/// The dashboard's symbols, for terminals with and without Unicode.
struct DashGlyphs: Sendable, Equatable {
    var isUnicode: Bool

    var rule: String { isUnicode ? "─" : "-" }
    var wall: String { isUnicode ? "│" : "|" }
    var dot: String { isUnicode ? "●" : "*" }
    var cursor: String { isUnicode ? "▸" : ">" }
    var none: String { isUnicode ? "–" : "-" }
    var mark: String { isUnicode ? "…" : ".." }
    var path: String { isUnicode ? "›" : ">" }

    func cells(_ text: String) -> String { TerminalText.cells(text, isUnicode: isUnicode) }

    /// The full and empty parts of a progress bar.
    func bar(_ share: Double, columns: Int) -> (full: String, rest: String) {
        let share = share.isFinite ? min(1, max(0, share)) : 0
        let filled = Int(Double(columns) * share)
        let (full, rest) = isUnicode ? ("━", "─") : ("#", "-")
        return (String(repeating: full, count: filled), String(repeating: rest, count: columns - filled))
    }

    /// A bar of `share` × `columns`, in eighths of a column; never empty for a positive share.
    func block(_ share: Double, columns: Int) -> String {
        let share = share.isFinite ? min(1, max(0, share)) : 0
        guard share > 0, columns > 0 else { return "" }
        guard isUnicode else { return String(repeating: "#", count: max(1, Int((share * Double(columns)).rounded()))) }
        let eighths = max(1, Int((share * Double(columns) * 8).rounded()))
        let parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
        return String(repeating: "█", count: eighths / 8) + parts[eighths % 8]
    }

    /// A sparkline of the newest values, newest at the right.
    func spark(_ values: [Double], columns: Int) -> String {
        let shown = values.suffix(max(0, columns))
        let top = shown.max() ?? 0
        let signs: [Character] = Array(isUnicode ? "▁▂▃▄▅▆▇█" : ".:-=+*#")
        let text = shown.map { value in
            top <= 0 ? signs[0] : signs[min(signs.count - 1, Int(value / top * Double(signs.count - 1) + 0.5))]
        }
        return String(repeating: " ", count: max(0, columns - shown.count)) + String(text)
    }
}

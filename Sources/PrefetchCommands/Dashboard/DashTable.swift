/// Renders a table: the first column gets the space that the others leave; if that is too little, columns are dropped by rank.
struct DashTable<Row> {
    struct Column {
        var title: String
        var width: Int
        /// Columns of the highest rank are dropped first; 0 is never dropped.
        var rank: Int
        var isRight = true
        /// Whether a truncated text keeps its end too.
        var keepsEnd = false
        var cell: (Row) -> (text: String, ink: Ink)

        init(
            _ title: String, _ width: Int, rank: Int = 0, isRight: Bool = true,
            _ cell: @escaping (Row) -> (text: String, ink: Ink)
        ) {
            (self.title, self.width, self.rank, self.isRight, self.cell) = (title, width, rank, isRight, cell)
        }
    }

    var glyphs: DashGlyphs
    var width: Int
    /// The width of the first column is its minimum.
    var columns: [Column]

    private var shown: [Column] {
        var shown = columns
        while needed(shown) > width, let last = shown.map(\.rank).max(), last > 0 {
            if let index = shown.lastIndex(where: { $0.rank == last }) { shown.remove(at: index) }
        }
        if !shown.isEmpty { shown[0].width += max(0, min(width - needed(shown), 34)) }
        return shown
    }

    /// A blank before each column, one more for the cursor.
    private func needed(_ columns: [Column]) -> Int { columns.reduce(0) { $0 + $1.width + 1 } }

    /// The titles, then the rows; `cursor` is the selected row.
    func lines(_ rows: some Collection<Row>, cursor: Int? = nil) -> [StyledLine] {
        let shown = shown
        var head = StyledLine()
        for (index, column) in shown.enumerated() {
            head.put(" ")
            place(column.title, .dim, column, isLast: index == shown.count - 1, in: &head)
        }
        var lines = [head.cut(to: width, mark: "")]
        for (number, row) in rows.enumerated() {
            var line = StyledLine()
            for (index, column) in shown.enumerated() {
                line.put(index == 0 && number == cursor ? glyphs.cursor : " ", .accent)
                let cell = column.cell(row)
                place(cell.text, cell.ink, column, isLast: index == shown.count - 1, in: &line)
            }
            line = line.cut(to: width, mark: glyphs.mark)
            lines.append(number == cursor ? line.selected(over: min(width, line.width)) : line)
        }
        return lines
    }

    private func place(_ text: String, _ ink: Ink, _ column: Column, isLast: Bool, in line: inout StyledLine) {
        let text =
            column.keepsEnd
            ? DisplayWidth.cutMiddle(text, to: column.width, mark: glyphs.mark)
            : DisplayWidth.cut(text, to: column.width, mark: glyphs.mark)
        let blanks = String(repeating: " ", count: max(0, column.width - DisplayWidth.columns(text)))
        if column.isRight { line.put(blanks) }
        line.put(text, ink)
        if !column.isRight && !isLast { line.put(blanks) }
    }
}

internal import ArgumentParser

/// The answer of a command, from which its text, its JSON and its page are made.
struct Sheet {
    enum Part {
        /// For people, as it is.
        case line(String)
        /// The title of the parts that follow.
        case heading(String, note: String)
        /// Titles and texts.
        case rows([(title: String, text: String)])
        case table(SheetTable)
    }

    /// For programs.
    var json: JSONText
    var parts: [Part] = []
    /// For the person at the terminal, on standard error, so that programs do not read them.
    var notes: [String] = []
    var exitCode: Int32 = 0

    init(_ object: some Shown) { json = object.json }

    /// The text for people, line by line.
    var lines: [String] {
        parts.flatMap { part -> [String] in
            switch part {
            case .line(let line): [line]
            case .heading(let title, _): ["\(title):"]
            case .rows(let rows):
                SheetTable.aligned(rows.map { [$0.title, $0.text] }, isNumber: [false, false]).map { "  \($0)" }
            case .table(let table): table.lines
            }
        }
    }

    mutating func add(_ line: String) { parts.append(.line(line)) }

    mutating func add(_ lines: [String]) { parts += lines.map(Part.line) }

    /// A table of records, by the titles of their members; nothing without rows.
    /// * `first`: the title of the first column, if that depends on what it is about.
    mutating func add(table rows: [some Record], first: String? = nil) {
        guard !rows.isEmpty else { return }
        var table = SheetTable(rows)
        if let first { table.heads[0] = first }
        parts.append(.table(table))
    }

    /// Prints it, and ends the command if its code is not 0.
    func print(asJSON: Bool) throws {
        if asJSON {
            Console.print(json.text)
        } else {
            for line in lines { Console.print(line) }
            for note in notes { Console.note(note) }
        }
        if exitCode != 0 { throw ExitCode(exitCode) }
    }
}

/// Records as a table.
struct SheetTable {
    var heads: [String]
    var isNumber: [Bool]
    var rows: [[String]]

    /// Columns are the members that have a title; one in which nothing stands is left out.
    init<Row: Record>(_ records: [Row]) {
        let columns = Row.fields.filter { $0.title != nil }.map { field -> (field: Field<Row>, cells: [String]) in
            let values = records.map { field.value($0) }
            let shares = values.compactMap { $0 as? Share }
            return (
                field: field,
                cells: !shares.isEmpty && shares.count == values.count
                    ? Share.texts(shares) : values.map { $0?.text ?? "" }
            )
        }.filter { $0.cells.contains { !$0.isEmpty } }
        heads = columns.map { $0.field.title ?? "" }
        isNumber = columns.map { $0.field.shape().isNumber }
        rows = records.indices.map { row in columns.map { $0.cells[row] } }
    }

    /// The heads and the rows, two blanks between columns.
    var lines: [String] { Self.aligned([heads.map { $0.uppercased() }] + rows, isNumber: isNumber) }

    static func aligned(_ rows: [[String]], isNumber: [Bool]) -> [String] {
        let widths = isNumber.indices.map { column in rows.map { DisplayWidth.columns($0[column]) }.max() ?? 0 }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                let blanks = String(repeating: " ", count: widths[column] - DisplayWidth.columns(cell))
                line += (column > 0 ? "  " : "") + (isNumber[column] ? blanks + cell : cell + blanks)
            }
            while line.last == " " { line.removeLast() }
            return line
        }
    }
}

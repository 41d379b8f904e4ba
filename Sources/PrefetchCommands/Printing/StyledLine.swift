/// A line of a screen: pieces of text, each with its style, and the columns they take. What is put in must be made of cells
/// (``TerminalText/cells(_:isUnicode:)``).
struct StyledLine: Sendable {
    private(set) var pieces: [(text: String, ink: Ink)] = []
    private(set) var width = 0

    init() {}

    init(_ text: String, _ ink: Ink = .plain) { put(text, ink) }

    /// Adds a piece behind the others.
    mutating func put(_ text: String, _ ink: Ink = .plain) {
        guard !text.isEmpty else { return }
        pieces.append((text, ink))
        width += DisplayWidth.columns(text)
    }

    /// Adds all of another line.
    mutating func put(_ line: StyledLine) {
        for piece in line.pieces { put(piece.text, piece.ink) }
    }

    /// Blanks up to a column; nothing where that is passed.
    mutating func move(to column: Int) {
        if column > width { put(String(repeating: " ", count: column - width)) }
    }

    /// The line in at most so many columns.
    func cut(to limit: Int, mark: String) -> StyledLine {
        guard width > limit else { return self }
        var line = StyledLine()
        for piece in pieces {
            let room = limit - line.width
            let columns = DisplayWidth.columns(piece.text)
            // The last piece that fits whole may have to give way to the mark of what follows.
            if columns < room || (columns == room && line.width + columns == width) {
                line.put(piece.text, piece.ink)
            } else {
                line.put(DisplayWidth.cut(piece.text + " ", to: room, mark: mark), piece.ink)
                break
            }
        }
        return line
    }

    /// Everything in reverse, over so many columns.
    func selected(over columns: Int) -> StyledLine {
        var line = StyledLine()
        for piece in pieces { line.put(piece.text, piece.ink.selected) }
        if line.width < columns { line.put(String(repeating: " ", count: columns - line.width), Ink.plain.selected) }
        return line
    }

    /// The text without its styles.
    var text: String { pieces.map(\.text).joined() }

    /// What a terminal is sent.
    func painted(isColoured: Bool) -> String {
        pieces.map { $0.ink.painted($0.text, isColoured: isColoured) }.joined()
    }
}

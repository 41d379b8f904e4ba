/// What a terminal shows after some output: rows, a cursor, the few sequences that progress lines use. Everything else is an error.
struct TerminalScreen {
    let width: Int
    private(set) var rows: [String] = [""]
    /// The longest row a frame ever had.
    private(set) var widest = 0
    /// Sequences that are none of ours.
    private(set) var unknown: [String] = []
    private(set) var frames = 0
    private var row = 0
    private var isInFrame = false

    init(width: Int) { self.width = width }

    /// Rows without the empty ones at the end.
    var text: [String] { Array(rows[...(rows.lastIndex { !$0.isEmpty } ?? 0)]) }

    mutating func write(_ output: String) {
        var rest = output.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\n":
                row += 1
                if row == rows.count { rows.append("") }
            case "\r": break
            case "\u{1B}": sequence(&rest)
            default:
                rows[row].unicodeScalars.append(scalar)
                // The bar's signs and an ellipsis take one column; whatever else is not ASCII takes two here.
                let columns = rows[row].unicodeScalars.reduce(0) {
                    $0 + ($1.isASCII || $1 == "…" || (0x2500...0x257F).contains($1.value) ? 1 : 2)
                }
                if isInFrame { widest = max(widest, columns) }
            }
        }
    }

    private mutating func sequence(_ rest: inout String.UnicodeScalarView.SubSequence) {
        var text = ""
        while let scalar = rest.popFirst() {
            text.unicodeScalars.append(scalar)
            if text != "[", ("@"..."~").contains(scalar) { break }
        }
        switch (text.last, text) {
        case ("A", _): row = max(0, row - (Int(text.dropFirst().dropLast()) ?? 1))
        case (_, "[J"):
            rows.removeSubrange((row + 1)...)
            rows[row] = ""
        // Colours take no columns.
        case ("m", _): break
        case (_, "[?2026h"): (frames, isInFrame) = (frames + 1, true)
        case (_, "[?2026l"): isInFrame = false
        default: unknown.append(text)
        }
    }
}

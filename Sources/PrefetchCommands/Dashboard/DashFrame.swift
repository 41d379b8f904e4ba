internal import Prefetch
internal import WebImage

/// Renders the dashboard's state as styled lines, without side effects. As many lines as the screen has rows, none wider than the screen.
struct DashFrame {
    var state: DashState
    var columns: Int
    var rows: Int
    var glyphs: DashGlyphs
    /// Formats a time, from milliseconds since 1970.
    var clock: (Int) -> String

    static let least = (columns: 40, rows: 10)

    /// Below this width tables are stacked.
    var isWide: Bool { columns >= 72 }
    /// Whether there is room for batches and graphs of workers.
    var isLarge: Bool { columns >= 110 && rows >= 34 }

    func lines() -> [StyledLine] {
        guard columns >= Self.least.columns, rows >= Self.least.rows else {
            let text = "terminal too small: \(columns)x\(rows), 40x10 is the least"
            return [StyledLine(DisplayWidth.cut(text, to: columns, mark: glyphs.mark), .warning)]
        }
        var lines = [header]
        if state.isHelpShown {
            lines += help
        } else if state.snapshot == nil {
            lines += nothing
        } else {
            switch state.view {
            case .batch: lines += batchView(rows - 2)
            case .workers: lines += workersView(rows - 2)
            case .failures: lines += failuresView(rows - 2)
            case .hosts: lines += hostsView(rows - 2)
            case .log: lines += logView(rows - 2)
            }
        }
        lines = Array(lines.prefix(rows - 1))
        while lines.count < rows - 1 { lines.append(StyledLine()) }
        lines.append(footer)
        return lines.map { $0.cut(to: columns, mark: glyphs.mark) }
    }

    var rule: StyledLine { StyledLine(String(repeating: glyphs.rule, count: columns), .dim) }

    private var nothing: [StyledLine] {
        var lines = [StyledLine()]
        if let away = state.away {
            lines.append(StyledLine(" Redis is away, trying again: \(glyphs.cells(away))", .warning))
        } else if let id = state.id {
            lines.append(StyledLine(" reading \(glyphs.cells(id)) \(glyphs.mark)", .dim))
        } else {
            lines.append(StyledLine(" no batch yet", .bold))
            lines.append(StyledLine(" make one: prefetch-coord submit urls.txt", .dim))
        }
        return lines
    }

    // MARK: Header and footer

    private var header: StyledLine {
        var line = StyledLine(" ")
        if columns >= 60 {
            line.put("prefetch", .title)
            line.put(" \(glyphs.wall) ", .dim)
        }
        line.put(glyphs.cells(state.id ?? "no batch"), .bold)
        if let snapshot = state.snapshot {
            let (word, ink) = stateWord(snapshot.status)
            line.put(" ")
            line.put("\(glyphs.dot) \(word)", ink)
            line.put(" " + Self.span(snapshot.status.elapsed))
            let lost = state.workerRows.count { $0.state == "LOST" }
            let workers = Wording.count(snapshot.workers.count, "worker")
            let missing = lost > 0 ? " +\(lost) LOST" : ""
            if line.width + 3 + workers.utf8.count + missing.utf8.count <= columns {
                line.put(" \(glyphs.wall) ", .dim)
                line.put(workers)
            }
            line.put(missing, .bad)
        }
        if state.isFrozen { line.put("  FROZEN", .warning) }
        let time = state.snapshot.map { clock($0.at) } ?? ""
        var place = glyphs.cells(state.place)
        if line.width + 2 + DisplayWidth.columns(place) + 1 + time.utf8.count + 1 > columns { place = "" }
        let right = (place.isEmpty ? "" : place + " ") + time
        if line.width + 2 + DisplayWidth.columns(right) + 1 <= columns {
            line.move(to: columns - DisplayWidth.columns(right) - 1)
            line.put(right, .dim)
        }
        return line
    }

    private func stateWord(_ status: BatchStatus) -> (String, Ink) {
        switch status.state {
        case .running where status.isEffectivelyPaused: ("PAUSED", .warning)
        case .running: state.isStalled ? ("STALLED", .warning) : ("RUNNING", .good)
        case .done: ("DONE", .good)
        case .cancelled: ("CANCELLED", .bad)
        }
    }

    /// A question or a notice, otherwise views and keys.
    private var footer: StyledLine {
        if let question = state.question { return StyledLine(" " + glyphs.cells(question.text), .warning) }
        if state.isEditingFilter {
            return StyledLine(" filter: \(glyphs.cells(state.filter))_   Enter keeps it, Esc takes it away", .accent)
        }
        if let notice = state.notice { return StyledLine(" " + glyphs.cells(notice), .accent) }
        var line = StyledLine()
        for view in DashView.allCases {
            line.put(" ")
            let isOpen = view == state.view && !state.isHelpShown
            line.put("\(view.rawValue)", isOpen ? .title : .dim)
            // On a narrow screen only the open view shows its name.
            if columns >= 60 || isOpen { line.put(" \(view.title)", isOpen ? .title : .plain) }
        }
        if !state.filter.isEmpty { line.put("  filter: \(glyphs.cells(state.filter))", .warning) }
        line.put(" \(glyphs.wall)", .dim)
        let keys = DashKey.table(isReadOnly: state.isReadOnly).filter { $0.footer != nil }
        // The first keys that fit, the help key before all; separated by two blanks.
        var room = columns - line.width + 1
        var shown: Set<String> = []
        for key in keys.filter({ $0.label == "?" }) + keys {
            let width = 3 + key.sign.utf8.count + (key.footer ?? "").utf8.count
            guard !shown.contains(key.label), width <= room else { continue }
            shown.insert(key.label)
            room -= width
        }
        for (position, key) in keys.filter({ shown.contains($0.label) }).enumerated() {
            line.put(position > 0 ? "  \(key.sign)" : " \(key.sign)", .accent)
            line.put(" \(key.footer ?? "")")
        }
        return line
    }

    private var help: [StyledLine] {
        var lines = [rule]
        let entries = DashKey.table(isReadOnly: state.isReadOnly).filter { !$0.label.isEmpty }
        // As few columns as needed, and none too narrow to read; the rest is scrolled.
        var height = max(1, rows - (state.isReadOnly ? 4 : 3))
        let count = max(1, min((entries.count + height - 1) / height, columns / 38))
        let isCut = entries.count > count * height
        if isCut { height -= 1 }
        let start = isCut ? min(state.helpStart, entries.count - count * height) : 0
        let shown = entries[start..<min(entries.count, start + count * height)]
        for row in 0..<min(height, shown.count) {
            var line = StyledLine()
            for (number, index) in stride(from: start + row, to: shown.endIndex, by: height).enumerated() {
                let width = columns / count
                line.move(to: number * width)
                line.put(" " + glyphs.cells(entries[index].label), .accent)
                line.move(to: number * width + 11)
                line.put(DisplayWidth.cutWords(entries[index].help, to: max(4, width - 12), mark: glyphs.mark))
            }
            lines.append(line)
        }
        if isCut {
            lines.append(
                StyledLine(" keys \(start + 1) to \(shown.endIndex) of \(entries.count): j k go through them", .dim))
        }
        if state.isReadOnly { lines.append(StyledLine(" read-only: keys that change the queue are not there", .dim)) }
        return lines
    }

    // MARK: Shared by views

    /// 15m36s, 9.8s: without blanks.
    static func span(_ seconds: Double) -> String {
        seconds < 60 ? "\(Int(seconds))s" : Wording.seconds(seconds).filter { $0 != " " }
    }

    /// A number in at most 7 columns: 199,310, then 4.81M.
    static func short(_ number: Int) -> String {
        if abs(number) < 1_000_000 { return Wording.count(number) }
        let value = Double(number)
        return abs(number) < 1_000_000_000
            ? "\(Wording.decimal(value / 1e6, digits: 2))M" : "\(Wording.decimal(value / 1e9, digits: 2))G"
    }

    func rate(_ history: DashHistory) -> String {
        let rate = history.rate
        guard rate.isKnown else { return glyphs.none }
        return Wording.decimal(rate.images, digits: rate.images < 9.95 && rate.images > 0 ? 1 : 0)
    }

    func megabytes(_ history: DashHistory) -> String {
        history.rate.isKnown ? Wording.decimal(history.rate.bytes / 1e6, digits: 1) : glyphs.none
    }

    /// The visible part of rows, including the cursor.
    func window(_ count: Int, cursor: Int, height: Int) -> Range<Int> {
        guard height > 0, count > 0 else { return 0..<0 }
        let start = min(max(0, cursor - height + 1), max(0, count - height))
        return start..<min(count, start + height)
    }
}

internal import Prefetch
internal import WebImage

/// The lines of a batch that are redrawn in place, as text: bar, limit, rates, workers and problems. None is wider than
/// the terminal.
enum InlineFrame {
    /// * `width`: columns a line may have.
    static func lines(
        _ status: BatchStatus, _ load: WorkerLoad, _ rate: ProgressRate, width: Int, isUnicode: Bool,
        isColoured: Bool = false
    ) -> [String] {
        let counts = status.counts
        let load = load.beside(left: status.left)
        var second = "  \(Wording.decimal(rate.urls, digits: 0)) URLs/s  "
        second += "\(Wording.decimal(rate.bytes / 1e6, digits: 1)) MB/s  "
        let pause = BatchText.pause(status) ?? (load.isPaused ? "every worker is paused" : nil)
        second += "ETA \(rate.eta(status, load).map(Wording.seconds) ?? "-")"
        if counts.skipped > 0 { second += "   skipped \(Wording.count(counts.skipped)) (\(BatchText.causes(counts)))" }
        var third = "  no worker is running"
        if load.workers > 0 {
            third = "  \(load.workers) worker\(load.workers == 1 ? "" : "s"), \(load.report.inFlight) in flight"
            if load.report.checking > 0 { third += ", \(Wording.count(load.report.checking)) being checked" }
        }
        if load.paused > 0, pause == nil { third += ", \(load.paused) paused" }
        if let pause { third = "  \(pause);" + third.dropFirst() }
        if let last = load.last { third += "; \(last.text)" }
        if let shards = BatchText.shards(status) { third += ", \(shards)" }
        if status.isOpen, status.estimate == 0 { third += ", more URLs to come" }
        if status.isWaitingForList { third += ", waiting for its list" }
        if status.isWaitingForMemory { third += ", waiting for memory of Redis" }
        let limit = load.limit.map { "  " + TerminalText.cells(LimitText.line($0), isUnicode: isUnicode) }
        var lines = [first(status, width: width, isUnicode: isUnicode, isColoured: isColoured)]
        lines += [limit, second, third].compactMap(\.self).map {
            DisplayWidth.cut($0, to: width, mark: DisplayWidth.mark(isUnicode))
        }
        if let trouble = load.trouble {
            let text = "  " + TerminalText.cells(trouble, isUnicode: isUnicode)
            let line = DisplayWidth.cut(text, to: width, mark: DisplayWidth.mark(isUnicode))
            lines.append(isColoured ? Ink.warning.painted(line, isColoured: true) : line)
        }
        return lines
    }

    /// A line about a skipped URL: what became of it stands out.
    static func failure(_ line: String, isColoured: Bool) -> String {
        guard isColoured, let gap = line.firstRange(of: "  ") else { return line }
        return Ink.warning.painted(String(line[..<gap.lowerBound]), isColoured: true) + line[gap.lowerBound...]
    }

    /// Name, share, bar and counts; the bar has what is left of the width, and goes first where there is none.
    private static func first(_ status: BatchStatus, width: Int, isUnicode: Bool, isColoured: Bool) -> String {
        let finished = status.counts.finished
        let total = status.expectedTotal ?? status.total
        let head = "\(TerminalText.escaped(status.id))  \(status.shareText.map { "\($0) " } ?? "")"
        let tail = "  \(Wording.count(finished))/\(status.isOpen ? "~" : "")\(Wording.count(total))"
        let columns = width - head.utf8.count - tail.utf8.count
        guard columns >= 5 else { return DisplayWidth.cut(head + tail, to: width, mark: DisplayWidth.mark(isUnicode)) }
        // More may have ended than there are, by what somebody wrote into Redis.
        let filled = total == 0 ? columns : min(columns, columns * finished / total)
        let (full, rest) = isUnicode ? ("━", "─") : ("#", "-")
        let bar = (String(repeating: full, count: filled), String(repeating: rest, count: columns - filled))
        guard isColoured else { return head + bar.0 + bar.1 + tail }
        return head + Ink.good.painted(bar.0, isColoured: true) + Ink.dim.painted(bar.1, isColoured: true) + tail
    }
}

internal import Prefetch
internal import WebImage

/// Plain progress on standard error: a line when 5 % more have finished (at most one a second) or 10 s have passed, in fixed `key=value` order, never a
/// carriage return. State of one batch being watched.
struct ProgressLines {
    /// Whether the first reading has a line too.
    private let saysPresent: Bool
    private var lastShare: Int?
    private var lastTime = ContinuousClock.now
    private var wasPaused = false
    private var lastLimit: LimitCause?
    private var rate = ProgressRate()

    init(saysPresent: Bool = false) {
        self.saysPresent = saysPresent
    }

    /// Whether a reading is worth a line.
    mutating func isDue(_ status: BatchStatus) -> Bool {
        let now = ContinuousClock.now
        let share = Self.share(status)
        rate.add(status)
        guard let lastShare else {
            lastShare = share
            wasPaused = status.isEffectivelyPaused && saysPresent
            return saysPresent || status.state != .running
        }
        if status.isEffectivelyPaused != wasPaused { return true }
        let isStep = share / 5 > lastShare / 5 && now - lastTime >= .seconds(1)
        return isStep || status.state != .running || now - lastTime >= .seconds(10)
    }

    /// The line for a reading of the batch.
    mutating func line(for status: BatchStatus, _ load: WorkerLoad) -> String {
        let counts = status.counts
        let load = load.beside(left: status.left)
        lastShare = Self.share(status)
        lastTime = .now
        wasPaused = status.isEffectivelyPaused
        let eta = rate.eta(status, load).map { "\(Int(clamped: $0.rounded(.up)))s" } ?? "-"
        var line =
            "\(UTCTime.clock()) \(TerminalText.escaped(status.id)) \(status.shareText ?? "-") finished=\(counts.finished) "
            + "total=\(status.isOpen ? "~" : "")\(status.expectedTotal ?? status.total) skipped=\(counts.skipped) rate=\(Int(clamped: rate.urls.rounded()))/s "
            + "MBps=\(Wording.decimal(rate.bytes / 1e6, digits: 1)) inflight=\(load.report.inFlight) "
            + "checking=\(load.report.checking) eta=\(eta)"
        if status.isEffectivelyPaused {
            line += " paused=\(status.isPaused ? "batch" : "queue")"
        } else if load.isPaused {
            line += " paused=workers"
        }
        // Its figures change with each line: told when the cause does.
        if let limit = load.limit, limit.cause != lastLimit {
            let text = "\(LimitText.detail(limit))" + (LimitText.option(limit).map { "; see \($0)" } ?? "")
            line += " limit=\(limit.cause.rawValue) why=\"\(text.replacing("\"", with: "'"))\""
        }
        lastLimit = load.limit?.cause
        if let last = load.last { line += " last=\(last.word)" }
        if let trouble = load.trouble {
            line += " trouble=\"\(TerminalText.escaped(trouble).replacing("\"", with: "'"))\""
        }
        return line
    }

    private static func share(_ status: BatchStatus) -> Int {
        let total = status.expectedTotal ?? status.total
        return total == 0 ? 100 : status.counts.finished * 100 / total
    }
}

internal import Glibc
internal import Prefetch
internal import WebImage

/// Plain progress on standard error: a line when 5 % more have finished (at most one a second) or 10 s have passed, in fixed `key=value` order, never a
/// carriage return. State of one batch being watched.
struct ProgressLines {
    /// Whether the first reading has a line too.
    private let saysPresent: Bool
    private var lastShare: Int?
    private var lastTime = ContinuousClock.now
    private var wasHeld = false
    private var lastLimit: LimitCause?
    private var last = (finished: 0, bytes: 0, at: ContinuousClock.now)
    private var rate = 0.0
    private var byteRate = 0.0

    init(saysPresent: Bool = false) {
        self.saysPresent = saysPresent
    }

    /// Whether a reading is worth a line.
    mutating func isDue(_ status: BatchStatus) -> Bool {
        let now = ContinuousClock.now
        let share = Self.share(status)
        guard let lastShare else {
            // Rates count from here: what had finished before says nothing about now.
            lastShare = share
            wasHeld = status.isHeld && saysPresent
            last = (status.counts.finished, status.counts.bytes, now)
            return saysPresent || status.state != .running
        }
        if status.isHeld != wasHeld { return true }
        let isStep = share / 5 > lastShare / 5 && now - lastTime >= .seconds(1)
        return isStep || status.state != .running || now - lastTime >= .seconds(10)
    }

    /// The line for a reading of the batch.
    mutating func line(for status: BatchStatus, _ load: WorkerLoad) -> String {
        let now = ContinuousClock.now
        let counts = status.counts
        let load = load.beside(left: status.total - counts.finished)
        let elapsed = (now - last.at) / .seconds(1)
        if elapsed > 0.05 {
            rate = max(0, Double(counts.finished - last.finished) / elapsed)
            byteRate = max(0, Double(counts.bytes - last.bytes) / elapsed)
        }
        lastShare = Self.share(status)
        lastTime = now
        wasHeld = status.isHeld
        last = (counts.finished, counts.bytes, now)
        let left = Double(status.total - counts.finished)
        let eta = rate > 0 && !status.isHeld && load.last == nil ? "\(Int(clamped: (left / rate).rounded(.up)))s" : "-"
        var line =
            "\(Self.clock) \(TerminalText.escaped(status.id)) \(Wording.share(counts.finished, of: status.total)) finished=\(counts.finished) "
            + "total=\(status.total) skipped=\(counts.skipped) rate=\(Int(clamped: rate.rounded()))/s "
            + "MBps=\(Wording.decimal(byteRate / 1e6, digits: 1)) inflight=\(load.inFlight) "
            + "checking=\(load.checking) eta=\(eta)"
        if status.isHeld {
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
        status.total == 0 ? 100 : status.counts.finished * 100 / status.total
    }

    /// 12:41:07, local time.
    static var clock: String {
        var seconds = time(nil)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { Wording.padded(Int($0)) }.joined(separator: ":")
    }
}

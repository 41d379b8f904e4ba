internal import Glibc
internal import Prefetch
internal import WebImage

/// Plain progress on standard error: a line when 5 % more have finished (at most one a second) or 10 s have passed, in fixed `key=value` order, never a
/// carriage return. State of one batch being watched.
struct ProgressLines {
    private var lastShare = 0
    private var lastTime = ContinuousClock.now
    private var last = (finished: 0, bytes: 0, at: ContinuousClock.now)
    private var rate = 0.0
    private var byteRate = 0.0

    /// The line for a new reading of the batch, where one is due.
    mutating func line(for status: BatchStatus, inFlight: Int, waitingForHost: Int) -> String? {
        let now = ContinuousClock.now
        let counts = status.counts
        let share = status.total == 0 ? 100 : counts.finished * 100 / status.total
        let isOver = status.state != .running
        let isStep = share / 5 > lastShare / 5 && now - lastTime >= .seconds(1)
        guard isStep || isOver || now - lastTime >= .seconds(10) else { return nil }
        let elapsed = (now - last.at) / .seconds(1)
        if elapsed > 0.05 {
            rate = Double(counts.finished - last.finished) / elapsed
            byteRate = Double(counts.bytes - last.bytes) / elapsed
        }
        lastShare = share
        lastTime = now
        last = (counts.finished, counts.bytes, now)
        let left = Double(status.total - counts.finished)
        let eta = rate > 0 ? "\(Int((left / rate).rounded(.up)))s" : "-"
        var line =
            "\(Self.clock) \(status.id) \(Wording.share(counts.finished, of: status.total)) finished=\(counts.finished) "
            + "total=\(status.total) skipped=\(counts.skipped) rate=\(Int(rate.rounded()))/s "
            + "MBps=\(Wording.decimal(byteRate / 1e6, digits: 1)) inflight=\(inFlight) eta=\(eta)"
        if waitingForHost > 0 && waitingForHost > inFlight {
            line += " held-by=--max-per-host(\(waitingForHost) waiting)"
        }
        return line
    }

    /// 12:41:07, local time.
    static var clock: String {
        var seconds = time(nil)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { Wording.padded(Int($0)) }.joined(separator: ":")
    }
}

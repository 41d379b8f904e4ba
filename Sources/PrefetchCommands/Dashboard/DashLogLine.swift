internal import Prefetch
internal import WebImage

/// A line of the dashboard's log: what it has seen happen since it was opened.
struct DashLogLine: Sendable {
    /// How bad it is.
    enum Level: String, Sendable {
        case info = "INFO"
        case good = "OK"
        case warning = "WARN"
        case bad = "ERROR"
    }

    /// Milliseconds since 1970.
    var at: Int
    var level: Level
    var text: String
    /// What it says of skipped URLs; nil of any other line.
    var skipped: Skipped?

    /// How many were skipped since a moment, and why.
    struct Skipped: Sendable {
        /// Milliseconds since 1970.
        var since: Int
        var counts: PrefetchCounts
    }
}

extension DashState {
    /// Notes what has changed from one reading of a batch to the next.
    mutating func tell(from old: BatchLook?, to new: BatchLook) {
        let status = new.status
        guard let old else {
            let counts = status.counts
            note(
                new.at, .info,
                "\(status.id) is \(status.state.rawValue), \(Wording.count(counts.finished)) of "
                    + "\(Wording.count(status.total)) finished, \(Wording.count(new.workers.count, "worker"))")
            return
        }
        for name in new.workers.keys.sorted() where old.workers[name] == nil { note(new.at, .info, "\(name) joined") }
        for name in old.workers.keys.sorted() where new.workers[name] == nil {
            if let end = ends[name], !end.isLost {
                note(new.at, .info, "\(name) left")
            } else {
                let jobs = ends[name].map { ", \(Wording.count($0.returned, "job")) went back to the queue" } ?? ""
                note(new.at, .warning, "\(name) is lost\(jobs)")
            }
        }
        for (name, worker) in new.workers.sorted(by: { $0.key < $1.key }) {
            let before = old.workers[name]
            if worker.leaseLeft <= 0, let before, before.leaseLeft > 0 {
                note(new.at, .warning, "\(name) gives no sign of life, its lease is over")
            }
            let (was, now) = (before?.report.trouble ?? "", worker.report.trouble)
            if !now.isEmpty && now != was { note(new.at, .bad, "\(name) waits: \(now)") }
            if now.isEmpty && !was.isEmpty { note(new.at, .good, "\(name) goes on") }
            tellPause(of: name, before?.report.isPaused, worker.report.isPaused, new.at)
        }
        tellPause(of: status.id, old.status.isPaused, status.isPaused, new.at)
        tellPause(of: "the queue", old.status.isQueuePaused, status.isQueuePaused, new.at)
        if status.priority != old.status.priority {
            note(new.at, .info, "\(status.id) has priority \(status.priority.rawValue)")
        }
        if status.state != old.status.state {
            let counts = status.counts
            note(
                new.at, status.state == .done ? .good : .warning,
                "\(status.id) \(status.state.rawValue): finished \(Wording.count(counts.finished)) skipped "
                    + Wording.count(counts.skipped))
        }
        if status.counts.skipped > old.status.counts.skipped, status.state == .running { tellSkips(from: old, to: new) }
    }

    /// One line for those of ten seconds, unless something else has happened in between: others would not be seen among them.
    private mutating func tellSkips(from old: BatchLook, to new: BatchLook) {
        var skipped = DashLogLine.Skipped(since: new.at, counts: PrefetchCounts())
        if let last = log.last?.skipped, new.at - last.since < 10_000 {
            skipped = last
            log.removeLast()
        }
        for outcome in PrefetchOutcome.allCases where outcome.isSkipped {
            skipped.counts[outcome] += max(0, new.status.counts[outcome] - old.status.counts[outcome])
        }
        let counts = skipped.counts
        note(new.at, .info, "skipped \(Wording.count(counts.skipped)): \(BatchText.causes(counts))")
        log[log.count - 1].skipped = skipped
    }

    /// Hosts that are left alone from now on, and those that are no longer. How slow one is changes too often to be told.
    mutating func tellHosts(from old: QueueLook, to new: QueueLook) {
        func alone(_ look: QueueLook) -> [TroubledHost] { look.hosts.filter { $0.state != .slow } }
        let before = Set(alone(old).map(\.host)), after = Set(alone(new).map(\.host))
        for line in HostText.lines(alone(new).filter { !before.contains($0.host) }) { note(new.at, .warning, line) }
        let back = before.subtracting(after).sorted()
        for host in back.prefix(10) {
            note(new.at, .good, "host \(TerminalText.escaped(host)) is asked as usual again")
        }
        if back.count > 10 { note(new.at, .good, "and \(Wording.count(back.count - 10)) other hosts") }
    }

    private mutating func tellPause(of what: String, _ was: Bool?, _ now: Bool, _ at: Int) {
        guard let was, was != now else { return }
        note(at, now ? .warning : .good, now ? "\(what) was paused" : "\(what) goes on")
    }
}

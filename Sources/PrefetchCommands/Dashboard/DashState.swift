internal import Prefetch
internal import Redis
internal import WebImage

/// The state of the dashboard: readings and input. ``DashFrame`` draws it.
struct DashState: Sendable {
    /// The end of a worker that is no longer registered.
    struct WorkerEnd: Sendable, Equatable {
        var isLost: Bool
        /// Milliseconds since 1970, and jobs that went back.
        var ended: Int, returned: Int
    }

    struct Question: Sendable {
        var text: String
        var effect: DashEffect
    }

    /// The current batch, if any.
    var id: String?
    var snapshot: BatchSnapshot?
    var queue = QueueSnapshot()
    var ends: [String: WorkerEnd] = [:]
    var history = DashHistory()
    var workerHistory: [String: DashHistory] = [:]
    var hostHistory: [String: DashHistory] = [:]
    /// CPU of workers: last report and its time, and the share of a core.
    var cpu: [String: (at: Int, milliseconds: Int, share: Double?)] = [:]
    var failures: [Int: FailureDetail] = [:]
    var log: [DashLogLine] = []
    /// When a URL last ended, as far as this dashboard has seen.
    var lastChange: Int?

    var view = DashView.batch
    var cursors: [DashView: Int] = [:]
    var sortIndexes: [DashView: Int] = [:]
    var isReversed = false
    var filter = ""
    var isEditingFilter = false
    var isFrozen = false
    var isHelpShown = false
    /// The first key shown in the help, if not all fit.
    var helpStart = 0
    /// The selected cause in the failures view; nil shows the causes.
    var cause: String?
    var question: Question?
    /// The reply to the last key, until the next one.
    var notice: String?
    var away: String?
    /// Seconds between two readings.
    var refresh = 0.5
    var isReadOnly = false
    /// A short name of the Redis.
    var place = ""

    /// The most details of skipped URLs, and lines of the log, that are kept.
    private static let (maxFailures, maxLines) = (2_000, 500)

    mutating func take(_ reading: DashReading) {
        if let queue = reading.queue {
            tellHosts(from: self.queue, to: queue)
            self.queue = queue
        }
        if away != nil, let at = reading.snapshot?.at ?? snapshot?.at { note(at, .good, "Redis is back") }
        away = nil
        guard let new = reading.snapshot else { return }
        // A reading of the previously selected batch.
        if let id, new.status.id != id { return }
        show(new.status.id)
        ends.merge(reading.ends) { $1 }
        tell(from: snapshot, to: new)
        snapshot = new
        if lastChange == nil { lastChange = max(new.status.created, new.status.last) }
        if new.status.last > lastChange ?? 0 { lastChange = new.status.last }
        history.add(new.status)
        for name in Set(new.counts.keys).union(new.workers.keys) {
            let own = new.counts[name] ?? PrefetchCounts()
            workerHistory[name, default: DashHistory()].add(
                ProgressMark(at: new.at, finished: own.finished, skipped: own.skipped, bytes: own.bytes))
        }
        for (name, host) in new.hosts {
            hostHistory[name, default: DashHistory()].add(
                ProgressMark(at: new.at, finished: host.finished, skipped: host.skipped, bytes: host.bytes))
        }
        for (name, worker) in new.workers { takeCPU(of: name, worker, at: new.at) }
        for (index, detail) in reading.failures where failures.count < Self.maxFailures { failures[index] = detail }
    }

    private mutating func takeCPU(of name: String, _ worker: WorkerRecord, at: Int) {
        guard let said = worker.report.cpu else { return }
        guard let last = cpu[name] else {
            cpu[name] = (at, said, nil)
            return
        }
        // Heartbeats come once a second: in between nothing is new.
        guard said != last.milliseconds || at - last.at > 3_000, at - last.at > 900 else { return }
        cpu[name] = (at, said, Double(max(0, said - last.milliseconds)) / Double(at - last.at))
    }

    mutating func show(_ batch: String) {
        guard batch != id else { return }
        (id, snapshot, lastChange, cause) = (batch, nil, nil, nil)
        (history, workerHistory, hostHistory, failures) = (DashHistory(), [:], [:], [:])
        ends = [:]
    }

    mutating func lose(_ reason: String) {
        if away == nil, let at = snapshot?.at { note(at, .bad, "Redis is away: \(reason)") }
        away = reason
    }

    mutating func note(_ at: Int, _ level: DashLogLine.Level, _ text: String) {
        log.append(DashLogLine(at: at, level: level, text: text))
        if log.count > Self.maxLines { log.removeFirst(log.count - Self.maxLines) }
    }

    /// Seconds since a URL ended.
    var silence: Double {
        guard let snapshot, let lastChange else { return 0 }
        return max(0, Double(snapshot.at - lastChange) / 1000)
    }

    /// Hosts in trouble; remaining seconds as of the last reading of the batch.
    var troubledHosts: [HostProblem] {
        queue.hosts.map { host in
            var host = host
            host.remaining -= Double(max(0, (snapshot?.at ?? queue.at) - queue.at)) / 1000
            return host
        }
    }

    var cache: CacheLoad { CacheLoad((snapshot?.workers ?? [:]).sorted { $0.key < $1.key }.map(\.value.report)) }

    /// The workers' load, limited to values consistent with the batch's counts.
    var load: WorkerLoad {
        guard let snapshot else { return WorkerLoad() }
        return WorkerLoad(snapshot.workers).beside(left: snapshot.status.left)
    }

    /// What holds the batch back; nil if it is not running.
    var limit: RunLimit? { snapshot.flatMap { RunLimit(workers: $0.workers, batches: [$0.status]) } }

    /// Why a running batch makes no progress; nil if it does.
    var stallReason: String? {
        if let away { return "Redis is away, trying again: \(away)" }
        guard let snapshot, snapshot.status.state == .running else { return nil }
        if let pause { return pause }
        if snapshot.workers.isEmpty { return "no worker is there" }
        let troubles: [String] = snapshot.workers.compactMap { name, worker in
            let trouble = worker.report.trouble
            if let held = worker.report.held {
                return "\(name) is held: \(held.reason) since \(UTCTime.text(milliseconds: held.since)): \(trouble)"
            }
            return trouble.isEmpty ? nil : "\(name) waits: \(trouble)"
        }
        if let trouble = troubles.min() { return trouble }
        if snapshot.workers.values.allSatisfy({ $0.condition == .overdue }) { return "no worker sends a heartbeat" }
        if snapshot.workers.values.allSatisfy(\.report.isPaused) {
            return "every worker is paused" + (isReadOnly ? "" : ": p in the workers view resumes one")
        }
        if let names = load.report.names, names.silence > 0, names.waiting > 0 {
            return
                "the resolver answers nothing: \(Wording.count(names.waiting, "name")) wait; see the worker's warning"
        }
        if snapshot.status.isWaitingForList { return "waiting for its list" }
        if snapshot.status.isWaitingForMemory { return "Redis is full: its list waits for memory" }
        let load = load
        let waiting = troubledHosts.filter(\.isInBackOff)
        if let next = waiting.map(\.remaining).min(), load.report.inFlight == 0 {
            return "\(Wording.count(waiting.count, "host")) in back-off, the next is asked in \(Wording.seconds(next))"
        }
        if isStalled {
            return load.report.retrying > 0
                ? "\(Wording.count(load.report.retrying)) wait for their next try" : "nothing ends"
        }
        return nil
    }

    /// The pause in effect, and the key that ends it.
    private var pause: String? {
        guard let status = snapshot?.status, status.isEffectivelyPaused else { return nil }
        let (batch, queue) = isReadOnly ? ("", "") : ("; p resumes it", "; P resumes it")
        if status.isPaused && status.isQueuePaused {
            return "this batch is paused, and the whole queue too" + (isReadOnly ? "" : ": p and P")
        }
        return status.isPaused ? "this batch is paused" + batch : "the whole queue is paused" + queue
    }

    /// Whether no URL of a running batch that is not paused has ended for a minute.
    var isStalled: Bool {
        snapshot?.status.state == .running && snapshot?.status.isEffectivelyPaused == false && silence >= 60
    }

    // MARK: Log

    /// Logs the changes between two readings of a batch.
    private mutating func tell(from old: BatchSnapshot?, to new: BatchSnapshot) {
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
            if worker.condition == .overdue, let before, before.condition != .overdue {
                note(new.at, .warning, "\(name) sends no heartbeat, its lease has expired")
            }
            let (was, now) = (before?.report.trouble ?? "", worker.report.trouble)
            if !now.isEmpty && now != was { note(new.at, .bad, "\(name) waits: \(now)") }
            if now.isEmpty && !was.isEmpty { note(new.at, .good, "\(name) continues") }
            logPause(of: name, before?.report.isPaused, worker.report.isPaused, new.at)
        }
        logPause(of: status.id, old.status.isPaused, status.isPaused, new.at)
        logPause(of: "the queue", old.status.isQueuePaused, status.isQueuePaused, new.at)
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
        if status.counts.skipped > old.status.counts.skipped, status.state == .running { logSkips(from: old, to: new) }
    }

    /// One line per ten seconds, unless other events came in between: more would hide other events.
    private mutating func logSkips(from old: BatchSnapshot, to new: BatchSnapshot) {
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

    /// Logs hosts that enter or leave back-off. The speed of slow hosts changes too often.
    private mutating func tellHosts(from old: QueueSnapshot, to new: QueueSnapshot) {
        func alone(_ snapshot: QueueSnapshot) -> [HostProblem] { snapshot.hosts.filter { $0.state != .slow } }
        let before = Set(texts: alone(old).map(\.host)), after = Set(texts: alone(new).map(\.host))
        for line in HostText.lines(alone(new).filter { !before.contains($0.host) }) { note(new.at, .warning, line) }
        let back = before.subtracting(after).sorted()
        for host in back.prefix(10) {
            note(new.at, .good, "host \(TerminalText.escaped(host.text)) is asked as usual again")
        }
        if back.count > 10 { note(new.at, .good, "and \(Wording.count(back.count - 10)) other hosts") }
    }

    private mutating func logPause(of what: String, _ was: Bool?, _ now: Bool, _ at: Int) {
        guard let was, was != now else { return }
        note(at, now ? .warning : .good, now ? "\(what) was paused" : "\(what) continues")
    }
}

internal import Prefetch
internal import Redis

/// What all workers of a queue do now, as of their last heartbeat.
struct WorkerLoad: Equatable {
    /// How many there are.
    var workers = 0
    /// The sum of their reports.
    var report = WorkerReport()
    /// How many workers are paused, and how many do nothing for that or because of a local fault.
    var paused = 0, idle = 0
    /// What keeps one of them from working.
    var trouble: String?
    /// What the last URLs of the batch wait for, where they keep it from its end.
    var last: LastURLs?
    /// What holds the batch back; nil where it is not running, or was not asked.
    var limit: RunLimit?

    init() {}

    /// Adds up what the workers said.
    init(_ snapshot: QueueSnapshot) { self.init(snapshot.workers) }

    /// The same.
    init(_ workers: [String: WorkerRecord]) {
        self.workers = workers.count
        for (name, worker) in workers.sorted(by: { $0.key < $1.key }) {
            let said = worker.report
            report.join(said)
            if said.isPaused { paused += 1 }
            if said.isPaused || !said.trouble.isEmpty { idle += 1 }
            if !said.trouble.isEmpty {
                trouble = "\(name) \(said.held == nil ? "paused" : "held: disk"): \(said.trouble)"
            }
        }
    }

    /// Whether there are workers and all of them are paused.
    var isPaused: Bool { workers > 0 && paused == workers }

    /// Whether there are workers and none of them works, so that nothing tells when a batch ends.
    var isIdle: Bool { workers > 0 && idle == workers }

    /// The same beside the counts of a batch, which are newer: all together are no more than are left.
    func beside(left: Int) -> WorkerLoad {
        var load = self
        var rest = left
        func part(_ number: Int) -> Int {
            let part = min(number, max(0, rest))
            rest -= part
            return part
        }
        load.report.inFlight = part(report.inFlight)
        load.report.stalled = min(report.stalled, load.report.inFlight)
        load.report.checking = part(report.checking)
        load.report.waitingForHost = part(report.waitingForHost)
        load.report.retrying = part(report.retrying)
        return load
    }
}

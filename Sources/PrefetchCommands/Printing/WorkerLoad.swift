internal import Prefetch
internal import Redis

/// What all workers of a queue do now, as of their last heartbeat.
struct WorkerLoad: Equatable {
    /// How many there are.
    var workers = 0
    /// Transfers in flight, and those of them that have sent nothing for a while.
    var inFlight = 0, stalled = 0
    /// URLs whose image is being checked and stored, or waits for that.
    var checking = 0
    /// URLs that wait for their host's turn, and for their next try.
    var waitingForHost = 0, retrying = 0
    /// What their resolvers were asked.
    var names = NameReport()
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
    init(_ workers: [String: BatchSnapshot.Worker]) {
        self.workers = workers.count
        for (name, worker) in workers.sorted(by: { $0.key < $1.key }) {
            let report = worker.report
            inFlight += report.inFlight
            stalled += report.stalled
            checking += report.checking
            waitingForHost += report.waitingForHost
            retrying += report.retrying
            if let asked = report.names { names = names + asked }
            if report.isPaused { paused += 1 }
            if report.isPaused || !report.trouble.isEmpty { idle += 1 }
            if !report.trouble.isEmpty {
                trouble = "\(name) \(report.held == nil ? "paused" : "held: disk"): \(report.trouble)"
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
        load.inFlight = part(inFlight)
        load.stalled = min(stalled, load.inFlight)
        load.checking = part(checking)
        load.waitingForHost = part(waitingForHost)
        load.retrying = part(retrying)
        return load
    }
}

internal import Prefetch

/// What all workers of a queue do now, as of their last sign of life.
struct WorkerLoad: Equatable {
    /// How many there are.
    var workers = 0
    /// Transfers in flight, and URLs that wait for their host's turn.
    var inFlight = 0, waitingForHost = 0
    /// How many of them are paused.
    var paused = 0
    /// What keeps one of them from working.
    var trouble: String?

    init() {}

    /// Adds up what the workers said.
    init(_ facts: [[String: String]]) {
        workers = facts.count
        for fact in facts {
            inFlight += Int(fact["in_flight"] ?? "") ?? 0
            waitingForHost += Int(fact["waiting_for_host"] ?? "") ?? 0
            if fact["paused"] == "1" { paused += 1 }
            if let text = fact["trouble"], !text.isEmpty { trouble = "\(fact["id"] ?? "") paused: \(text)" }
        }
    }

    /// Whether there are workers and all of them are paused.
    var isPaused: Bool { workers > 0 && paused == workers }

    /// The same beside the counts of a batch, which are newer: no more URLs wait than are left and not in flight.
    func beside(left: Int) -> WorkerLoad {
        var load = self
        load.waitingForHost = min(waitingForHost, max(0, left - inFlight))
        return load
    }

    /// Whether the limit of transfers to one host is what holds the batch.
    var isHeldByHosts: Bool { waitingForHost > 0 && waitingForHost > inFlight }
}

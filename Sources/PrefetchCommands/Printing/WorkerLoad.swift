internal import Prefetch
internal import Redis

/// What all workers of a queue do now, as of their last sign of life.
struct WorkerLoad: Equatable {
    /// How many there are.
    var workers = 0
    /// Transfers in flight, and those of them that have sent nothing for a while.
    var inFlight = 0, parked = 0
    /// URLs whose image is being checked and stored, or waits for that.
    var checking = 0
    /// URLs that wait for their host's turn, and for their next try.
    var waitingForHost = 0, retrying = 0
    /// Hosts that nobody asks now, since they gave no answer or wanted it so.
    var hostsLeftAlone = 0
    /// How many workers are paused.
    var paused = 0
    /// What keeps one of them from working.
    var trouble: String?

    init() {}

    /// Adds up what the workers said.
    init(_ facts: [[String: String]]) {
        workers = facts.count
        for fact in facts {
            func number(_ name: String) -> Int { max(0, fact[name].flatMap { Int(plausible: $0) } ?? 0) }
            inFlight += number("in_flight")
            parked += number("parked")
            checking += number("checking")
            waitingForHost += number("waiting_for_host")
            retrying += number("retrying")
            if fact["paused"] == "1" { paused += 1 }
            if let text = fact["trouble"], !text.isEmpty {
                trouble = "\(fact["id"] ?? "") \(WorkerHold(fact) == nil ? "paused" : "held: disk"): \(text)"
            }
        }
    }

    /// Whether there are workers and all of them are paused.
    var isPaused: Bool { workers > 0 && paused == workers }

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
        load.parked = min(parked, load.inFlight)
        load.checking = part(checking)
        load.waitingForHost = part(waitingForHost)
        load.retrying = part(retrying)
        return load
    }

    /// Whether it is for their hosts that most URLs wait.
    var isHeldByHosts: Bool { waitingForHost > 0 && waitingForHost > inFlight + checking }

    /// Why they do: hosts that are left alone, where there are any, and otherwise the limit of transfers to one host.
    var whyHostsHold: String {
        hostsLeftAlone > 0 ? "\(Wording.count(hostsLeftAlone, "host")) left alone" : "--max-per-host"
    }
}

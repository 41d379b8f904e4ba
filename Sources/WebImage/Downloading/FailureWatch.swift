/// Tells whether transfers fail on several hosts that are otherwise healthy, more than is usual for this list: then the number of
/// transfers is the likely cause, and not a host.
struct FailureWatch {
    private struct Entry {
        var at: Double
        var sample: TransferSample
    }

    /// Failures of hosts that have answered before, and hosts that failed before they ever answered, as shares of all transfers.
    private struct Shares {
        var known = 0.0, new = 0.0
    }

    private struct Counts {
        /// * `failedBetween`: those among `failed` of hosts that answered other transfers in the same interval.
        var answers = 0, failed = 0, failedBetween = 0, failedNew = 0

        mutating func add(_ sample: TransferSample) {
            answers += sample.answered
            for failure in sample.failures {
                guard failure.isKnown else {
                    failedNew += 1
                    continue
                }
                let count = min(mostOfHost, failure.count)
                failed += count
                if failure.answers > 0 { failedBetween += count }
            }
        }

        var shares: Shares {
            Shares(
                known: failed == 0 ? 0 : Double(failed) / Double(failed + answers),
                new: failedNew == 0 ? 0 : Double(failedNew) / Double(failedNew + answers))
        }
    }

    struct Trouble: Equatable {
        var kind: TransferSample.HostFailure.Kind
        /// Whether the hosts that fail have never answered.
        var isNew: Bool
    }

    enum Finding: Equatable {
        case trouble(Trouble)
        /// What was blamed on the number of transfers goes on with fewer of them, on hosts that answer nothing.
        case unrelated
        /// It goes on with fewer of them, on hosts that answer in between: others may share the network.
        case shared
    }

    private var entries: [Entry] = []
    private var usual = Shares()
    /// The shares at the first back-off of a series, their number, and what has happened since the last one.
    private var blamed = Shares()
    private var blames = 0
    private var blamesNew = false
    private var since = Counts()
    /// Seconds of the samples without trouble.
    private var watched = 0.0

    /// Seconds over which failures are looked at, and by which their usual share follows.
    private static let (window, memory) = (4.0, 20.0)
    /// The least failures that say something: of known hosts, and new hosts.
    private static let (leastKnown, leastNew) = (5, 8)
    /// Shares that are no trouble in any case.
    private static let tolerated = Shares(known: 0.01, new: 0.05)
    /// Transfers that tell whether a back-off has helped, and the share of the failures before it that says it has not.
    private static let enough = 100
    private static let same = 0.75
    /// The share of failures of hosts that answer in between which says that the hosts are not dead.
    private static let between = 0.1
    /// Failures of one host that count within a sample: it is no more than one host.
    private static let mostOfHost = 3

    mutating func clear() { entries = [] }

    /// Records a sample, and says what it shows, if anything.
    mutating func add(_ sample: TransferSample, at time: Double) -> Finding? {
        entries.append(Entry(at: time, sample: sample))
        entries.removeAll { $0.at <= time - Self.window }
        let counts = entries.reduce(into: Counts()) { $0.add($1.sample) }
        if goesOn(sample) {
            usual = Shares(known: max(usual.known, blamed.known), new: max(usual.new, blamed.new))
            let isBetween = Double(since.failedBetween) > Self.between * Double(since.failed)
            endBlame()
            return isBetween ? .shared : .unrelated
        }
        if let trouble = trouble(counts.shares) { return .trouble(trouble) }
        watched += sample.seconds
        let weight = min(1, sample.seconds / min(Self.memory, watched))
        usual.known += weight * (counts.shares.known - usual.known)
        usual.new += weight * (counts.shares.new - usual.new)
        return nil
    }

    /// The trouble is answered by fewer transfers: remembers its extent, to see whether that helps.
    mutating func blame(_ trouble: Trouble) {
        let shares = entries.reduce(into: Counts()) { $0.add($1.sample) }.shares
        // Of a series the first: each of its steps helps a little.
        if blames == 0 { blamed = shares }
        blames += 1
        blamesNew = trouble.isNew
        since = Counts()
        clear()
    }

    mutating func endBlame() { (blames, since) = (0, Counts()) }

    /// Takes the present share of failures as the list's own.
    mutating func accept() {
        let now = entries.reduce(into: Counts()) { $0.add($1.sample) }.shares
        usual = Shares(known: max(usual.known, now.known), new: max(usual.new, now.new))
    }

    /// Whether fewer transfers did not reduce the failures, which are then not due to their number alone.
    private mutating func goesOn(_ sample: TransferSample) -> Bool {
        guard blames > 0 else { return false }
        since.add(sample)
        if blamesNew {
            return since.failedNew + since.answers >= Self.enough && since.shares.new >= Self.same * blamed.new
        }
        return blames > 1 && since.failed + since.answers >= Self.enough
            && since.shares.known >= Self.same * blamed.known
    }

    private func trouble(_ shares: Shares) -> Trouble? {
        let failures = entries.flatMap(\.sample.failures)
        let known = failures.filter(\.isKnown)
        let new = failures.filter { !$0.isKnown }
        if isAcrossHosts(known), known.reduce(0, { $0 + min(Self.mostOfHost, $1.count) }) >= Self.leastKnown,
            shares.known > Self.tolerated.known + 2 * usual.known
        {
            return Self.trouble(known, isNew: false)
        }
        if new.count >= Self.leastNew, shares.new > Self.tolerated.new + 2 * usual.new {
            return Self.trouble(new, isNew: true)
        }
        return nil
    }

    /// Whether several hosts fail, or half of the few that answer.
    private func isAcrossHosts(_ failures: [TransferSample.HostFailure]) -> Bool {
        let failing = Set(failures.map(\.host))
        if failing.count >= 3 { return true }
        let answering = Set(failures.lazy.filter { $0.answers > 0 }.map(\.host))
        return !answering.isEmpty && 2 * answering.count >= entries.map(\.sample.hosts).max() ?? 0
    }

    private static func trouble(_ failures: [TransferSample.HostFailure], isNew: Bool) -> Trouble {
        var counts: [TransferSample.HostFailure.Kind: Int] = [:]
        for failure in failures { counts[failure.kind, default: 0] += failure.count }
        return Trouble(kind: counts.max { $0.value < $1.value }?.key ?? .connect, isNew: isNew)
    }
}

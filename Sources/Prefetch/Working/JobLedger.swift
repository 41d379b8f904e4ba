internal import Threading
internal import WebImage

/// The jobs a worker has claimed. The tasks that load URLs write to it from any thread, without a hop to the worker's actor: that
/// would be a wake-up for each URL.
final class JobLedger: Sendable {
    /// One of its jobs, for the tasks that run it.
    struct Entry: Sendable {
        fileprivate let ledger: JobLedger
        fileprivate let id: Int

        /// Notes how URLs of it ended; they are reported with the job's end or within a second.
        func settle(_ items: [SettledEntry]) { ledger.settle(id, items) }
        /// Its URLs up to a position begin now.
        func begin(through position: Int) { ledger.begin(id, through: position) }
        /// A URL of it is asked for now: it was not in the cache.
        func noteBeginning(_ position: Int) { ledger.noteBeginning(id, position) }
        /// Leaves URLs of it open: nobody here will end them.
        func leave(count: Int = 1) { ledger.leave(id, count: count) }
        /// Nothing more comes of it.
        func end() { ledger.end(id) }
        /// It is somebody else's now.
        func forget() { ledger.forget(id) }
    }

    private struct State {
        var runs: [Int: JobRun] = [:]
        var next = 0
        var open = 0
        var lowWater: Int
    }

    /// Rings when there is something to report without delay.
    let reports = Bell()
    /// Rings when there is room for another job.
    let room = Bell()
    private let history: HistoryLog?
    private let state: Locked<State>

    ///
    /// * `lowWater`: with fewer open URLs than this there is room for another job.
    /// * `history`: hears how URLs ended.
    init(lowWater: Int, history: HistoryLog? = nil) {
        self.history = history
        state = Locked(State(lowWater: lowWater))
    }

    /// Changes when there is room for another job.
    func setLowWater(_ count: Int) {
        state.withLock { $0.lowWater = count }
        room.ring()
    }

    /// Outcomes that Redis has not taken yet.
    var unreportedCount: Int { state.withLock { $0.runs.values.reduce(0) { $0 + $1.unreported.count } } }

    /// URLs that have not ended and are not left to others.
    var openCount: Int { state.withLock { $0.open } }

    /// The batches the jobs are of.
    var batches: Set<BatchIdentity> { state.withLock { Set($0.runs.values.map(\.claim.batch)) } }

    /// The names of the claims that were made under this name of the worker.
    func names(of worker: String) -> [String] {
        state.withLock { $0.runs.values.filter { $0.worker == worker }.map(\.claim.name) }
    }

    /// Takes a job in.
    func add(_ run: JobRun) -> Entry {
        let id = state.withLock { state in
            state.next += 1
            state.runs[state.next] = run
            state.open += run.open
            return state.next
        }
        return Entry(ledger: self, id: id)
    }

    fileprivate func settle(_ id: Int, _ items: [SettledEntry]) {
        // Before anybody can report them.
        if let history, let run = state.withLock({ $0.runs[id] }) { history.settled(run.worker, run.claim.job, items) }
        let (isDue, hasRoom) = state.withLock { state in
            guard let index = state.runs.index(forKey: id) else { return (false, false) }
            state.runs.values[index].settle(items)
            state.open -= items.count
            // What is on the list again is told at once: whoever claims it then need not do it too.
            return (state.runs.values[index].isDue, state.open < state.lowWater)
        }
        if isDue { reports.ring() }
        if hasRoom { room.ring() }
    }

    fileprivate func begin(_ id: Int, through position: Int) {
        state.withLock { $0.runs[id]?.begunThrough = position }
    }

    fileprivate func leave(_ id: Int, count: Int) {
        let isDue = state.withLock { state in
            guard let index = state.runs.index(forKey: id) else { return false }
            state.runs.values[index].left += count
            state.open -= count
            return state.runs.values[index].mustGoBack
        }
        if isDue { reports.ring() }
        room.ring()
    }

    /// Takes the permits of the jobs of these batches back, nil = of all jobs; false where there was nothing to take.
    func callBack(_ batches: Set<BatchIdentity>?) -> Bool {
        let permits = state.withLock { state in
            state.runs.values.filter { batches?.contains($0.claim.batch) ?? true }.map(\.permit)
        }
        for permit in permits { permit.revoke() }
        return !permits.isEmpty
    }

    /// The jobs that were claimed under this name of the worker and have not gone back.
    func kept(by worker: String) -> [(id: Int, claim: QueueJobs.Claim)] {
        state.withLock { state in
            state.runs.filter { $0.value.worker == worker && !$0.value.isGivenBack }
                .map { ($0.key, $0.value.claim) }
        }
    }

    /// A job is on its batch's list again; one of which nothing more comes leaves.
    func didGiveBack(_ id: Int) {
        state.withLock { state in
            state.runs[id]?.isGivenBack = true
            Self.removeIfDone(id, from: &state)
        }
    }

    fileprivate func noteBeginning(_ id: Int, _ position: Int) {
        guard let history, let run = state.withLock({ $0.runs[id] }) else { return }
        history.began(run.worker, run.claim.job, position: position)
    }

    fileprivate func end(_ id: Int) {
        let isDue = state.withLock { state in
            guard let index = state.runs.index(forKey: id) else { return false }
            state.runs.values[index].hasEnded = true
            // Its last report may have been faster than its task.
            guard state.runs.values[index].isToldToEnd else { return true }
            Self.remove(id, from: &state)
            return false
        }
        if isDue { reports.ring() }
        room.ring()
    }

    fileprivate func forget(_ id: Int) {
        state.withLock { state in Self.remove(id, from: &state) }
        room.ring()
    }

    /// The jobs with open URLs, the one that was claimed first in front.
    func openRuns() -> [JobRun] {
        state.withLock { state in state.runs.filter { $0.value.open > 0 && !$0.value.hasEnded } }
            .sorted { $0.key < $1.key }.map(\.value)
    }

    /// What there is to report, by number.
    func reportable() -> [(id: Int, run: JobRun)] {
        state.withLock { state in
            state.runs.filter { !$0.value.unreported.isEmpty || $0.value.hasEnded || $0.value.mustGoBack }
                .map { ($0.key, $0.value) }
        }.sorted { $0.id < $1.id }
    }

    /// The first `count` outcomes of a job are reported; one that has ended and has no others leaves, unless it is to go back first.
    ///
    /// * `isFinal`: Redis was told that it has ended.
    func didReport(_ id: Int, count: Int, isFinal: Bool) {
        state.withLock { state in
            guard let index = state.runs.index(forKey: id) else { return }
            state.runs.values[index].unreported.removeFirst(count)
            if isFinal { state.runs.values[index].isToldToEnd = true }
            Self.removeIfDone(id, from: &state)
        }
    }

    /// Takes back what was fetched and is not reported: its bytes may be lost. The URLs go back with their job.
    /// - Returns: the entries whose files were written here.
    func takeBackDownloads() -> [(batch: BatchIdentity, entry: PrefetchJob.Entry)] {
        let taken = state.withLock { state in
            var taken: [(batch: BatchIdentity, entry: PrefetchJob.Entry)] = []
            for id in state.runs.keys {
                guard let index = state.runs.index(forKey: id) else { continue }
                let claim = state.runs.values[index].claim
                taken += state.runs.values[index].takeBackDownloads().map { (claim.batch, claim.job.entries[$0]) }
            }
            return taken
        }
        reports.ring()
        return taken
    }

    private static func removeIfDone(_ id: Int, from state: inout State) {
        guard let run = state.runs[id], run.hasEnded, run.unreported.isEmpty, !run.mustGoBack else { return }
        remove(id, from: &state)
    }

    private static func remove(_ id: Int, from state: inout State) {
        if let run = state.runs.removeValue(forKey: id) { state.open -= max(0, run.open - run.left) }
    }
}

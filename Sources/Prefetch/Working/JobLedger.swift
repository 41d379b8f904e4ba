internal import Threading
internal import WebImage

/// The jobs a worker has claimed. Written from any thread, since a hop to the worker's actor would cost a wake-up per URL.
final class JobLedger: Sendable {
    struct Entry: Sendable {
        fileprivate let ledger: JobLedger
        fileprivate let id: Int

        /// Records outcomes; they are reported with the job's end or within a second.
        func settle(_ items: [SettledEntry]) { ledger.settle(id, items) }
        /// Marks its URLs up to a position as started.
        func begin(through position: Int) { ledger.begin(id, through: position) }
        /// Leaves URLs open that this worker will not end.
        func leave(count: Int = 1) { ledger.leave(id, count: count) }
        /// Records that a URL of it failed by the worker's own network.
        func doubt() { ledger.doubt(id) }
        func end() { ledger.end(id) }
        /// Drops a job that was handed to other workers.
        func forget() { ledger.forget(id) }
    }

    private struct State {
        var runs: [Int: JobRun] = [:]
        var next = 0
        var open = 0
        /// ``room`` rings once when fewer URLs are open.
        var wakeBelow = Int.max
    }

    /// Rings when there is something to report without delay.
    let reports = WakeSignal()
    /// Rings when there is room for another job.
    let room = WakeSignal()
    private let state = Locked(State())

    /// Makes ``room`` ring once when fewer than `count` URLs are open, immediately if they are now.
    func wake(below count: Int) {
        let isBelow = state.withLock { state in
            let isBelow = state.open < count
            state.wakeBelow = isBelow ? 0 : count
            return isBelow
        }
        if isBelow { room.ring() }
    }

    /// Outcomes that Redis has not taken yet.
    var unreportedCount: Int { state.withLock { $0.runs.values.reduce(0) { $0 + $1.unreported.count } } }

    /// URLs that have not ended and are not left to others.
    var openCount: Int { state.withLock { $0.open } }

    /// Those of a higher priority.
    func openCount(above priority: PrefetchPriority) -> Int {
        state.withLock { state in
            state.runs.values.reduce(0) { $0 + ($1.claim.priority.isAbove(priority) ? max(0, $1.open - $1.left) : 0) }
        }
    }

    var batches: Set<BatchIdentity> { state.withLock { Set($0.runs.values.map(\.claim.batch)) } }

    /// Names of the claims made under this worker name.
    func names(of worker: String) -> [String] {
        state.withLock { $0.runs.values.filter { $0.worker == worker }.map(\.claim.name) }
    }

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
        let (isDue, hasRoom) = state.withLock { state in
            guard let index = state.runs.index(forKey: id) else { return (false, false) }
            // Outcomes of a job that is on the list again are reported at once, to save other workers from repeating them.
            let isDue = state.runs.values[index].settle(items)
            state.open -= items.count
            let hasRoom = state.open < state.wakeBelow
            if hasRoom { state.wakeBelow = 0 }
            return (isDue, hasRoom)
        }
        if isDue { reports.ring() }
        if hasRoom { room.ring() }
    }

    fileprivate func begin(_ id: Int, through position: Int) {
        state.withLock { $0.runs[id]?.startedThrough = position }
    }

    fileprivate func leave(_ id: Int, count: Int) {
        let isDue = state.withLock { state in
            guard let index = state.runs.index(forKey: id) else { return false }
            state.runs.values[index].left += count
            state.open -= count
            return state.runs.values[index].mustReturn
        }
        if isDue { reports.ring() }
        room.ring()
    }

    fileprivate func doubt(_ id: Int) { state.withLock { $0.runs[id]?.isDoubted = true } }

    /// Revokes the permits of the jobs of these batches, nil = of all jobs; false if there was nothing to revoke.
    func revokePermits(_ batches: Set<BatchIdentity>?) -> Bool {
        let permits = state.withLock { state in
            state.runs.values.filter { batches?.contains($0.claim.batch) ?? true }.map(\.permit)
        }
        for permit in permits { permit.revoke() }
        return !permits.isEmpty
    }

    /// Jobs claimed under this worker name that have not gone back.
    func kept(by worker: String) -> [(id: Int, claim: QueueJobs.Claim)] {
        state.withLock { state in
            state.runs.filter { $0.value.worker == worker && !$0.value.isReturned }
                .map { ($0.key, $0.value.claim) }
        }
    }

    /// Records that a job is on its batch's list again; removes it if it has ended.
    func didReturn(_ id: Int) {
        state.withLock { state in
            state.runs[id]?.isReturned = true
            Self.removeIfDone(id, from: &state)
        }
    }

    fileprivate func end(_ id: Int) {
        let isDue = state.withLock { state in
            guard let index = state.runs.index(forKey: id) else { return false }
            state.runs.values[index].hasEnded = true
            // Its last report may be faster than its task.
            guard state.runs.values[index].isEndReported else { return true }
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

    func openRuns() -> [JobRun] {
        state.withLock { state in state.runs.filter { $0.value.open > 0 && !$0.value.hasEnded } }
            .sorted { $0.key < $1.key }.map(\.value)
    }

    /// Jobs with something to report, by number.
    func reportable() -> [(id: Int, run: JobRun)] {
        state.withLock { state in
            state.runs.filter { !$0.value.unreported.isEmpty || $0.value.hasEnded || $0.value.mustReturn }
                .map { ($0.key, $0.value) }
        }.sorted { $0.id < $1.id }
    }

    /// Records that the first `count` outcomes of a job are reported; removes an ended job without others that need not go back.
    /// * `isFinal`: Redis was told that it has ended.
    func didReport(_ id: Int, count: Int, isFinal: Bool) {
        state.withLock { state in
            guard let index = state.runs.index(forKey: id) else { return }
            state.runs.values[index].unreported.removeFirst(count)
            if isFinal { state.runs.values[index].isEndReported = true }
            Self.removeIfDone(id, from: &state)
        }
    }

    /// Reopens URLs that were fetched but not reported: their bytes may be lost. They go back with their job.
    /// - Returns: the entries whose files were written here.
    func reopenDownloads() -> [(batch: BatchIdentity, entry: PrefetchJob.Entry)] {
        state.withLock { state in
            var taken: [(batch: BatchIdentity, entry: PrefetchJob.Entry)] = []
            for id in state.runs.keys {
                guard let index = state.runs.index(forKey: id) else { continue }
                let claim = state.runs.values[index].claim
                taken += state.runs.values[index].reopenDownloads().map { (claim.batch, claim.job.entries[$0]) }
            }
            return taken
        }
    }

    private static func removeIfDone(_ id: Int, from state: inout State) {
        guard let run = state.runs[id], run.hasEnded, run.unreported.isEmpty, !run.mustReturn else { return }
        remove(id, from: &state)
    }

    private static func remove(_ id: Int, from state: inout State) {
        if let run = state.runs.removeValue(forKey: id) { state.open -= max(0, run.open - run.left) }
    }
}

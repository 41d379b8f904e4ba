/// What holds a run back: the cause of most of the open work of all workers, with the figures that belong to it.
package struct RunLimit: Sendable, Equatable {
    /// Why there is nothing to claim.
    package enum ListState: Sendable, Equatable {
        /// All URLs are claimed or have ended.
        case queued
        /// Its feeder is slower than the workers, or waits for another list.
        case feeding
        /// Nothing has fed it for five seconds.
        case stopped
        /// Redis has no memory for more jobs.
        case full
    }

    package var cause: LimitCause
    /// How many workers it holds, and how many there are.
    package var workers = 0, allWorkers = 0
    package var list = ListState.queued
    /// Whether a batch or the queue is paused, not only workers.
    package var isBatchPaused = false, isQueuePaused = false
    /// What the workers said that it holds, joined; its `trouble` is a local fault of one of them.
    package var report = WorkerReport()

    package init(_ cause: LimitCause) { self.cause = cause }

    /// * `workers`: all registered ones.
    /// * `batches`: those that are looked at; others and ended ones may be among them.
    /// - Returns: nil if none of the batches is running.
    package init?(workers: [String: WorkerRecord], batches: [BatchStatus]) {
        let running = batches.filter { $0.state == .running }
        guard !running.isEmpty else { return nil }
        let reports = workers.sorted { $0.key < $1.key }.map(\.value).filter { $0.leaseLeft ?? 0 > 0 }.map(\.report)
        guard running.contains(where: { !$0.isEffectivelyPaused }) else {
            self.init(.paused)
            isBatchPaused = running.contains(where: \.isPaused)
            isQueuePaused = running.contains(where: \.isQueuePaused)
            (self.workers, allWorkers) = (reports.count, reports.count)
            return
        }
        guard let cause = Self.cause(of: reports) else {
            self.init(.workers)
            return
        }
        self.init(cause)
        allWorkers = reports.count
        list = Self.list(of: running)
        for said in reports where Self.cause(of: said) == cause {
            self.workers += 1
            report.join(said)
        }
    }

    /// A person's pause, and a disk that does not respond, are in the record before the worker's next heartbeat.
    private static func cause(of report: WorkerReport) -> LimitCause {
        if report.isPaused { return .paused }
        return report.held == nil ? report.limit : .disk
    }

    /// The cause of most of the open work; of equal ones, the one that a worker reports first. Nil without workers.
    private static func cause(of reports: [WorkerReport]) -> LimitCause? {
        var work: [LimitCause: Int] = [:]
        for report in reports {
            let open =
                report.inFlight + report.checking + report.waitingForHost + report.retrying + report.unreported
            // One that has nothing counts a little: with all of them idle, that is the cause.
            work[cause(of: report), default: 0] += 16 * open + 1
        }
        return LimitCause.allCases.filter { work[$0] != nil }.max { work[$0] ?? 0 < work[$1] ?? 0 }
    }

    private static func list(of running: [BatchStatus]) -> ListState {
        if running.contains(where: \.isWaitingForMemory) { return .full }
        if running.contains(where: \.isWaitingForList) { return .stopped }
        return running.contains { !$0.isSealed } ? .feeding : .queued
    }
}

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
    // Of the workers that it holds: sums, and of percentages and times the highest.
    package var transferring = 0, stalled = 0, slots = 0, checking = 0, waitingForHost = 0, retrying = 0
    package var figures = WorkerFigures()
    package var names = NameReport()
    /// A local fault of one of them.
    package var trouble = ""

    package init(_ cause: LimitCause) { self.cause = cause }

    /// * `workers`: all registered ones.
    /// * `batches`: those that are looked at; others and ended ones may be among them.
    /// - Returns: nil if none of the batches is running.
    package init?(workers: [String: BatchSnapshot.Worker], batches: [BatchStatus]) {
        let running = batches.filter { $0.state == .running }
        guard !running.isEmpty else { return nil }
        let reports = workers.sorted { $0.key < $1.key }.map(\.value).filter { $0.leaseLeft > 0 }.map(\.report)
        guard running.contains(where: { !$0.isHeld }) else {
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
        for report in reports where Self.cause(of: report) == cause { add(report) }
    }

    /// A person's pause, and a disk that does not respond, are in the record before the worker's next heartbeat.
    private static func cause(of report: WorkerReport) -> LimitCause {
        if report.isPaused { return .paused }
        return report.held == nil ? report.limit : .disk
    }

    /// The cause of most of the open work; of equals the one that is told first of a worker. Nil without workers.
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

    private mutating func add(_ report: WorkerReport) {
        workers += 1
        transferring += report.transferring
        stalled += report.stalled
        slots += report.maxConcurrentDownloads ?? 0
        checking += report.checking
        waitingForHost += report.waitingForHost
        retrying += report.retrying
        if !report.trouble.isEmpty { trouble = report.trouble }
        figures.join(report.figures)
        if let more = report.names { names = names + more }
    }
}

extension WorkerFigures {
    /// Adds another worker's figures: counts and processors used are added, of percentages and times the highest is kept.
    fileprivate mutating func join(_ other: WorkerFigures) {
        slotsFull = max(slotsFull, other.slotsFull)
        answering = max(answering, other.answering)
        rateLimited = max(rateLimited, other.rateLimited)
        received += other.received
        for wait in other.hostWaits {
            if let index = hostWaits.firstIndex(where: { ($0.host, $0.reason) == (wait.host, wait.reason) }) {
                hostWaits[index].count += wait.count
            } else {
                hostWaits.append(wait)
            }
        }
        hostWaits = Array(
            hostWaits.sorted { ($0.count, $1.host) > ($1.count, $0.host) }.prefix(Self.maxHosts))
        redisLongest = max(redisLongest, other.redisLongest)
        redisBusy = max(redisBusy, other.redisBusy)
        isRefused = isRefused || other.isRefused
        fileOldest = max(fileOldest, other.fileOldest)
        fileBusy = max(fileBusy, other.fileBusy)
        processors = max(processors, other.processors)
        machineBusy = max(machineBusy, other.machineBusy)
        cpu += other.cpu
        checkCPU += other.checkCPU
        transferCPU = max(transferCPU, other.transferCPU)
    }
}

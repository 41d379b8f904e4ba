/// What holds a worker, or a run, back.
package enum LimitCause: String, Sendable, CaseIterable {
    case starting
    /// By a person.
    case paused
    /// A local fault, which the worker waits out.
    case fault
    /// Nothing is left to claim, or the list is queued more slowly than workers take it.
    case list
    case redis
    case disk
    /// This machine's processors: checking images.
    case checking
    /// This machine's processors: transfers.
    case processor
    /// Limits of single hosts, and back-off.
    case politeness
    case resolver
    /// The configured rate.
    case rate
    /// The servers' answers: the number of transfers is too low for their delay.
    case servers
    /// The link, or the rate at which servers send.
    case link
    /// There is no worker.
    case workers
    case nothing
}

extension LimitCause {
    /// Percent of a machine's processors that this queue's workers use at least where they, not other programs, have used it up.
    package static let ownShare = 40

    /// Above these figures, percent unless noted, a cause holds a worker back.
    package enum Threshold {
        /// With free slots for less than half of the time, more work could not have started sooner.
        static let slotsFull = 50
        /// Milliseconds: a claim or report on one machine takes 1, to another continent 300. A slow reply costs nothing while it is awaited
        /// for a small part of the time, since claims are made ahead. Where the processors are short it is slow because of them.
        static let (redisLongest, redisBusy) = (50, 30)
        /// Milliseconds: no file call of a healthy disk takes as long.
        package static let fileOldest = 1_000
        static let fileBusy = 50
        package static let machineBusy = 90
        /// Of the one processor that a thread can use: beyond it transfers wait for the thread.
        static let thread = 75
        /// One URL that waits for its host for so many in transfer: fewer leave slots free now and then.
        static let transfersPerWait = 4
        static let rateLimited = 50
        static let answering = 50
    }

    /// The cause told from one worker's record: the first that applies, so that nothing is named that only follows from another.
    /// * `peers`: registered workers, this one included. They are taken to share one machine evenly: if they do not, the processors are
    ///   also named if another program uses them, which is true as well.
    /// * `age`: milliseconds since it registered.
    package static func of(_ report: WorkerReport, peers: Int, age: Int) -> LimitCause {
        let figures = report.figures
        if report.isPaused { return .paused }
        if report.held != nil || figures.fileOldest > Threshold.fileOldest { return .disk }
        if !report.trouble.isEmpty { return .fault }
        guard age >= 1_000 else { return .starting }
        let hasFreeSlots = figures.slotsFull < Threshold.slotsFull
        let waitsForRedis = hasFreeSlots && isRedisSlow(figures)
        let isMachineBusy = figures.machineBusy > Threshold.machineBusy
        if figures.isRefused || waitsForRedis && !isMachineBusy { return .redis }
        let names = report.names ?? NameReport()
        let waits = report.waitingForHost + names.waiting
        if figures.lacksWork && hasFreeSlots && waits == 0 { return .list }
        if figures.fileBusy > Threshold.fileBusy { return .disk }
        if waitsForRedis || isShortOfProcessors(figures, peers: peers) {
            return figures.checkCPU > figures.transferCPU ? .checking : .processor
        }
        if hasFreeSlots, report.waitingForHost > 0,
            report.waitingForHost * Threshold.transfersPerWait >= report.transferring
        {
            return .politeness
        }
        if names.silence > 0 || hasFreeSlots && names.waiting > 0 { return .resolver }
        if figures.rateLimited > Threshold.rateLimited { return .rate }
        let isStalled = report.stalled > 0 && report.stalled >= report.transferring
        guard !hasFreeSlots || isStalled else { return .nothing }
        return isStalled || figures.answering > Threshold.answering ? .servers : .link
    }

    private static func isRedisSlow(_ figures: WorkerFigures) -> Bool {
        figures.redisLongest > Threshold.redisLongest && figures.redisBusy > Threshold.redisBusy
    }

    private static func isShortOfProcessors(_ figures: WorkerFigures, peers: Int) -> Bool {
        if figures.transferCPU > Threshold.thread { return true }
        let share = figures.cpu / max(1, figures.processors)
        return figures.machineBusy > Threshold.machineBusy && share * max(1, peers) >= ownShare
    }
}

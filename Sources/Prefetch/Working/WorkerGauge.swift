internal import Redis
internal import Threading
internal import WebImage

/// Measures what a worker's time and this machine's processors were used for since its last reading.
///
/// Confined to the worker's executor.
final class WorkerGauge {
    private struct Reading {
        var at = ContinuousClock.now
        var work = TransferWork()
        var filesSpent = Duration.zero
        var cpu = 0, checks = Duration.zero, transfers = Duration.zero
        var machine: (busy: Int, all: Int)?
    }

    private let worker: WorkerContext
    private var last: Reading?

    init(_ worker: WorkerContext) { self.worker = worker }

    /// The figures since the last reading, and its length; zeros at the first.
    nonisolated(nonsending) func read(
        _ activity: ImageDownloader.Activity
    ) async -> (figures: WorkerFigures, span: Duration) {
        let (manager, redis) = (worker.manager, worker.redis.calls.take())
        let calls = manager.cache.disk.folder.calls
        var now = Reading(work: activity.work)
        now.filesSpent = calls.spent
        now.cpu = ProcessUsage.milliseconds(with: manager) ?? 0
        let decoders = manager.coder.sandbox?.processorTime ?? .zero
        (now.checks, now.transfers) = (manager.pool.processorTime + decoders, manager.downloader.processorTime)
        now.machine = ProcessUsage.machine
        defer { last = now }
        var figures = WorkerFigures()
        figures.processors = Processors.count
        figures.fileOldest = Int(calls.oldest / .milliseconds(1))
        figures.redisLongest = Int(redis.longest / .milliseconds(1))
        if activity.waitingForHost > 0 {
            figures.hostWaits = Array(await manager.downloader.hostWaits.prefix(WorkerFigures.maxHosts))
        }
        guard let last, now.at > last.at else { return (figures, .zero) }
        let span = now.at - last.at
        func share(_ part: Duration, of whole: Duration) -> Int { Int((part / whole * 100).rounded()) }
        func share(_ part: Int, of whole: Int) -> Int { whole > 0 ? (part * 100 + whole / 2) / whole : 0 }
        let (work, before) = (now.work, last.work)
        let samples = work.samples - before.samples
        figures.slotsFull = share(work.full - before.full, of: samples)
        figures.rateLimited = share(work.limited - before.limited, of: samples)
        let answering = work.answering - before.answering
        figures.answering = share(answering, of: answering + work.receiving - before.receiving)
        figures.received = Int(Double(max(0, work.bytes - before.bytes)) / (span / .seconds(1)))
        figures.redisBusy = min(100, share(redis.busy, of: span))
        figures.fileBusy = max(
            share(now.filesSpent - last.filesSpent, of: span * manager.pool.count),
            share(work.spooling - before.spooling, of: samples))
        figures.cpu = share(.milliseconds(now.cpu - last.cpu), of: span)
        figures.checkCPU = share(now.checks - last.checks, of: span)
        figures.transferCPU = share(now.transfers - last.transfers, of: span)
        if let machine = now.machine, let past = last.machine {
            figures.machineBusy = share(machine.busy - past.busy, of: machine.all - past.all)
        }
        return (figures, span)
    }
}

internal import Threading
internal import WebImage

/// State shared by the loops of a worker and its URLs. Each part guards its own state; the loops' own state is private to them.
final class WorkerContext: Sendable {
    let configuration: PrefetchWorker.Configuration
    let manager: ImageManager
    let redis: PersistentQueue
    let registration: Registration
    let shutdown: Shutdown
    let jobs: JobLedger
    let batches: BatchContexts
    let slots: URLSlots
    /// Closed during a local fault: nothing starts.
    let fault: FaultGate
    /// Closed while the disk does not respond: nothing is claimed.
    let hold = FaultGate()
    let keeper: CacheKeeper
    let warningLog: WorkerWarnings

    /// * `queue`: throws at once if Redis is unreachable; the context waits, and reports that.
    init(_ configuration: PrefetchWorker.Configuration, queue: PrefetchQueue, manager: ImageManager) {
        self.configuration = configuration
        self.manager = manager
        warningLog = WorkerWarnings(configuration.onEvent)
        let onEvent = configuration.onEvent
        fault = FaultGate { message in onEvent(message.map { .paused($0) } ?? .resumed) }
        shutdown = Shutdown()
        var queue = queue
        queue.redis.notice = { [warningLog] in warningLog.say($0) }
        redis = PersistentQueue(queue, shutdown: shutdown, warningLog: warningLog, onEvent: configuration.onEvent)
        keeper = CacheKeeper(manager.cache.disk, limits: configuration.cacheLimits)
        jobs = JobLedger(history: configuration.history)
        slots = URLSlots(limit: URLSlots.limit(of: configuration.maxConcurrentDownloads.initial))
        batches = BatchContexts(
            redis, keeper: keeper, pool: manager.pool, downloader: manager.downloader,
            maxBytes: configuration.maxImageBytes)
        registration = Registration(configuration, redis: redis, shutdown: shutdown)
    }

    /// Registers under another name after its lease was lost, and requests its shares of hosts again.
    /// * `name`: the name whose lease was lost.
    nonisolated(nonsending) func rejoin(after name: String) async {
        if await registration.rejoin(after: name) { await manager.downloader.reportHostSharesAgain() }
    }

    /// Cancels waiting URLs and requests of jobs whose permit was revoked.
    nonisolated(nonsending) func endRevoked() async {
        slots.dismissRevoked()
        await manager.downloader.endRevoked()
    }

    /// Begins to leave. Callable from any thread, more than once.
    func drain() {
        slots.close()
        shutdown.draining.open()
        fault.open()
        hold.open()
        keeper.room.open()
        jobs.room.ring()
    }
}

final class Shutdown: Sendable {
    /// Opens on the first signal: nothing new starts.
    let draining = Latch()
    /// Opens after the drain timeout: current transfers are left open, except those that continue in the background.
    let drained = Latch()
    /// Opens on the second signal: all current transfers are left open.
    let stopping = Latch()
}

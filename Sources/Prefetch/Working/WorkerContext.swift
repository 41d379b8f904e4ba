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
    let faults: LocalFaults
    /// Closed while the disk does not respond: nothing is claimed.
    let hold = FaultGate()
    let network: Connectivity
    let keeper: CacheKeeper
    let warningLog: WorkerWarnings

    /// * `queue`: throws at once if Redis is unreachable; the context waits, and reports that.
    init(_ configuration: PrefetchWorker.Configuration, queue: PrefetchQueue, manager: ImageManager) {
        self.configuration = configuration
        self.manager = manager
        warningLog = WorkerWarnings(configuration.onEvent)
        network = Connectivity(onEvent: configuration.onEvent)
        shutdown = Shutdown()
        var queue = queue
        queue.redis.notice = { [warningLog] in warningLog.say($0) }
        redis = PersistentQueue(queue, shutdown: shutdown, warningLog: warningLog, onEvent: configuration.onEvent)
        keeper = CacheKeeper(manager.cache.disk, limits: configuration.cacheLimits)
        faults = LocalFaults(manager.cache.disk, keeper: keeper, shutdown: shutdown, onEvent: configuration.onEvent)
        jobs = JobLedger()
        slots = URLSlots(limit: URLSlots.limit(of: configuration.maxConcurrentDownloads.initial))
        batches = BatchContexts(
            redis, keeper: keeper, pool: manager.pool, downloader: manager.downloader,
            maxBytes: configuration.maxImageBytes)
        registration = Registration(configuration, redis: redis, shutdown: shutdown) {
            await manager.downloader.reportHostSharesAgain()
        }
    }

    /// Cancels waiting URLs and requests of jobs whose permit was revoked.
    nonisolated(nonsending) func endRevoked() async {
        slots.dismissRevoked()
        faults.dismissRevoked()
        await manager.downloader.endRevoked()
    }

    /// Begins to leave. Callable from any thread, more than once.
    func drain() {
        slots.close()
        shutdown.draining.open()
        faults.gate.open()
        hold.open()
        network.leave()
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

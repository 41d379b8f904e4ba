internal import Threading
internal import WebImage

/// What the loops of a worker and the URLs it runs share. Each part guards its own state; the loops' own state is private to them.
final class WorkerContext: Sendable {
    let configuration: PrefetchWorker.Configuration
    let manager: ImageManager
    let redis: PersistentQueue
    let registration: Registration
    let shutdown: Shutdown
    /// The claimed jobs.
    let jobs: JobLedger
    /// What is known of their batches.
    let batches: BatchContexts
    /// The URLs under way.
    let slots: URLSlots
    /// Closed while something of this machine is broken: nothing begins.
    let fault: FaultGate
    /// Closed while the disk does not answer: nothing is claimed.
    let hold = FaultGate()
    let keeper: CacheKeeper
    let complaints: Complaints

    /// * `queue`: throws at once where Redis is away; the context waits, and says so.
    init(_ configuration: PrefetchWorker.Configuration, queue: PrefetchQueue, manager: ImageManager) {
        self.configuration = configuration
        self.manager = manager
        complaints = Complaints(configuration.onEvent)
        let onEvent = configuration.onEvent
        fault = FaultGate { message in onEvent(message.map { .paused($0) } ?? .resumed) }
        shutdown = Shutdown()
        var queue = queue
        queue.redis.notice = { [complaints] in complaints.say($0) }
        redis = PersistentQueue(queue, shutdown: shutdown, complaints: complaints, onEvent: configuration.onEvent)
        keeper = CacheKeeper(manager.cache.disk, limits: configuration.cacheLimits)
        jobs = JobLedger(lowWater: 2 * configuration.maxConcurrentDownloads, history: configuration.history)
        slots = URLSlots(limit: URLSlots.limit(of: configuration.maxConcurrentDownloads))
        batches = BatchContexts(
            redis, keeper: keeper, pool: manager.pool, downloader: manager.downloader,
            mostBytes: configuration.maxImageBytes)
        registration = Registration(configuration, redis: redis, shutdown: shutdown)
    }

    /// Goes on under another name after its lease was lost. What hosts may have of it is said again.
    ///
    /// * `name`: the name whose lease was lost.
    nonisolated(nonsending) func rejoin(after name: String) async {
        if await registration.rejoin(after: name) { await manager.downloader.sayHostSharesAgain() }
    }

    /// No URL that waits for its turn gets it, and no request begins of a job whose permit was revoked.
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

/// The three steps of leaving.
final class Shutdown: Sendable {
    /// Opens on the first signal: nothing new begins.
    let draining = Latch()
    /// Opens when the drain timeout has passed: what is in flight is left open, unless it continues in the background.
    let drained = Latch()
    /// Opens on the second signal: whatever is in flight is left open.
    let stopping = Latch()
}

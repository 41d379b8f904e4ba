internal import Glibc
package import Redis
internal import Threading
public import WebImage

/// One worker process: claims jobs, keeps `maxConcurrentDownloads` transfers in flight across them, and reports each URL once.
///
/// It may die at any instruction: what it had claimed goes back after its lease, what it had published is a hit for the next one,
/// and an outcome that was reported twice counts once. A local fault (disk full, no network, Redis away) pauses it; no URL is
/// blamed.
public actor PrefetchWorker {
    let configuration: Configuration
    /// Throws at once where Redis is away: ``persist(until:_:)`` waits, and says so.
    let queue: PrefetchQueue
    let manager: ImageManager
    /// Verification, file calls and the glue between them: nothing of it runs on the cooperative pool.
    nonisolated let pool: ThreadPool
    nonisolated let slots: URLSlots
    nonisolated let fault = FaultGate()
    /// Closed while the disk does not answer: nothing is claimed.
    nonisolated let hold: FaultGate
    nonisolated let heartbeat: Heartbeat
    /// Rings with each claim that brought jobs.
    nonisolated let hasClaimed = Bell()
    /// Rings where a heartbeat was told that there may be something to reap.
    nonisolated let reapBell = Bell()
    /// Opens on the first signal: nothing new begins.
    nonisolated let draining = Latch()
    /// Opens when the drain timeout has passed: what is in flight is left open, unless it continues in the background.
    nonisolated let drained = Latch()
    /// Opens on the second one: whatever is in flight is left open.
    nonisolated let stopping = Latch()
    nonisolated let jobs: JobLedger
    nonisolated let bellConnection: RedisConnection
    nonisolated let keeper: CacheKeeper
    /// Where the images of its reports are.
    nonisolated let cache: BatchCache

    var name = ""
    var sequence = 0
    var lossCount = 0
    /// Whether its name is one that Redis does not know yet.
    private(set) var isJoining = false
    /// The connection to Redis on which it last said which jobs it has.
    var agreedOn = 0
    var batches: [BatchIdentity: BatchContext] = [:]
    /// What this worker was first to settle.
    var totals = PrefetchCounts()
    /// The part of it under the name it has now: what it did under another is told by that one's record.
    var ownTotals = PrefetchCounts()
    /// What was asked of hosts since it was told last; what was told and not confirmed, with its token; how many tokens there were.
    var hosts = HostTally()
    var untold: (hosts: HostTally, token: String)?
    var tallies = 0
    /// The first part of its tokens: a later process may have the same name.
    let tallyName = String(UInt64.random(in: .min ... .max), radix: 36)
    var lastJobSize = 64
    /// Transfers at once, as it was started or as it was told since.
    var concurrency: Int
    /// What it was last told by `prefetch-coord`.
    var orders = PrefetchQueue.WorkerOrders()
    /// When jobs were claimed last, and how many times the usual number they may be.
    var claimedAt = ContinuousClock.now
    var reach = 1
    /// How many URLs more than usual it has, because their hosts keep them.
    var allowed = 0
    /// The news of hosts it has heard.
    var hostsVersion: Int?
    /// Whose reports Redis did not take.
    var refused = RefusedReports()
    /// Whether it was said that its disk does not answer.
    var isHeld = false
    /// Whether the gate was closed by a failed sync.
    var syncHasFailed = false
    /// Whether Redis does as it is told.
    var outage = RedisOutage()
    nonisolated let complaints: Complaints
    /// How many failed URLs had gone, at the last beat, since there were more than their list may have.
    var unlisted: Int?

    /// A worker over its own three connections (one waits for work, one is for heartbeats alone) and a manager.
    package init(configuration: Configuration, redis: RedisConfiguration, queue name: String, manager: ImageManager) {
        self.configuration = configuration
        self.manager = manager
        concurrency = configuration.maxConcurrentDownloads
        let closed = manager.downloader.closedPlaces
        let close: @Sendable (Set<RedisPlace>) -> Void = { closed.close($0) }
        var queue = PrefetchQueue(redis, client: "prefetch-worker", name: name, patience: .zero, onPlaces: close)
        let complaints = Complaints(configuration.onEvent)
        self.complaints = complaints
        queue.notice = { complaints.say($0) }
        self.queue = queue
        bellConnection = RedisConnection(
            redis, name: "prefetch-worker-bell", following: queue.keys.root, onPlaces: close)
        pool = manager.pool
        cache = BatchCache(manager.cache.disk)
        keeper = CacheKeeper(manager.cache.disk, limits: configuration.cacheLimits)
        let jobs = JobLedger(lowWater: 2 * configuration.maxConcurrentDownloads, history: configuration.history)
        slots = URLSlots(limit: Self.slots(for: configuration.maxConcurrentDownloads))
        let hold = FaultGate()
        self.jobs = jobs
        self.hold = hold
        let (disk, transfers, downloader) = (manager.cache.disk, manager.cache.transfers, manager.downloader)
        var heart = PrefetchQueue(redis, client: "prefetch-worker-heartbeat", name: name, patience: .zero)
        heart.notice = { complaints.say($0) }
        heartbeat = Heartbeat(
            queue: heart, jobs: jobs, lease: configuration.lease, hold: hold,
            watched: Heartbeat.Watched(
                calls: disk.calls, probe: { try? disk.probe() }, silence: { downloader.silence },
                setSilent: { transfers.setSilent($0) }))
    }

    /// First-write counts so far.
    public var counts: PrefetchCounts { totals }

    /// Begins to leave: claims nothing, begins nothing, lets what is in flight finish up to the drain timeout, reports, gives
    /// the rest back. ``run()`` then returns. Callable from any thread, more than once.
    public nonisolated func drain() {
        slots.close()
        draining.open()
        fault.open()
        hold.open()
        keeper.room.open()
        jobs.room.ring()
        bellConnection.interrupt()
    }

    /// Leaves at once: what is in flight is cancelled and given back; nothing is lost and nothing is counted.
    public nonisolated func stop() {
        drain()
        drained.open()
        stopping.open()
    }

    /// Works until it is told to leave, or with `burst` until no batch is running. Returns its own counts.
    /// - Throws: `refused`, `configuration` or `redisUnavailable` where Redis will not have it (wrong password, too old, set to
    ///   evict); a Redis that is only away is waited for. Only at its start: from its registration on, whatever becomes of Redis is
    ///   waited out.
    public func run() async throws(PrefetchError) -> PrefetchCounts {
        guard try await meetRedis() else { return totals }
        await manager.downloader.shareHosts(limitRate: configuration.limitRateOfQueue)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.claimLoop() }
            group.addTask { await self.reportLoop() }
            group.addTask { await self.beatLoop() }
            group.addTask { await self.reapLoop() }
            group.addTask { await self.sweepLoop() }
            group.addTask { await self.roomLoop() }
            group.addTask { await self.hostLoop() }
            // The claim loop ends the run; the others go on until it has.
            await group.next()
            group.cancelAll()
        }
        await heartbeat.end()
        await leave()
        // Before the process ends: TLS must not be taken down under a thread that still uses it.
        await queue.connection.close()
        await bellConnection.close()
        return totals
    }

    /// Waits for Redis, looks whether it is one that can keep a queue, and registers; false where it is told to leave first.
    private func meetRedis() async throws(PrefetchError) -> Bool {
        let (queue, lease) = (queue, configuration.lease)
        _ = try await first { () async throws(RedisError) in
            _ = try await queue.connection.serverFacts().check()
        }
        while !draining.isOpen {
            let (name, about) = nextName()
            let joined = try await first(waitsOutRefusal: true) { () async throws(RedisError) in
                try await queue.join(worker: name, lease: lease, about: about)
            }
            if joined == true {
                configuration.history?.joined(name)
                configuration.onEvent(.joined(name))
                return true
            }
            if joined == false { lossCount += 1 }
        }
        return false
    }

    /// A call before the worker is one: what waiting cannot heal ends it. Nil where it is told to leave first.
    ///
    /// * `waitsOutRefusal`: so is an error reply that none of the known ones is; not one that says of a key that it is of a wrong type, which
    ///   a person has to mend.
    private func first<Success: Sendable>(
        waitsOutRefusal: Bool = false, _ body: () async throws(RedisError) -> Success
    ) async throws(PrefetchError) -> Success? {
        var ceiling = Duration.milliseconds(50)
        while !draining.isOpen {
            do throws(RedisError) {
                let value = try await body()
                redisAnswers()
                return value
            } catch {
                let isRefusal = waitsOutRefusal && error.code == .reply && error.replyCode != "WRONGTYPE"
                guard error.isTransient || error.code == .outOfMemory || isRefusal else { throw PrefetchError(error) }
                if isRefusal {
                    complaints.say("Redis refuses to register a worker (\(error.message)); asked again until it does")
                } else {
                    redisFails(error)
                }
                await pause(ceiling, orUntil: draining)
                ceiling = min(ceiling * 2, .seconds(5))
            }
        }
        return nil
    }

    private func nextName() -> (name: String, about: [(String, String)]) {
        let base = configuration.name.isEmpty ? ThisHost.nameAndPID : configuration.name
        name = lossCount == 0 ? base : "\(base).\(lossCount)"
        sequence = 0
        var about = [("host", ThisHost.name), ("pid", String(getpid())), ("version", PrefetchVersion)]
        // Orders were given to the process, not to the name it had.
        if orders.isWorkerPaused { about.append(("paused", "1")) }
        if let count = orders.ownConcurrency { about.append(("wanted", String(count))) }
        return (name, about)
    }

    /// Registers anew under a name nobody has.
    func register() async {
        isJoining = true
        defer { isJoining = false }
        while !Task.isCancelled && !draining.isOpen {
            let (name, about) = nextName()
            let joined = await persist(until: draining) { () async throws(RedisError) in
                try await queue.join(worker: name, lease: configuration.lease, about: about)
            }
            if joined == true {
                configuration.history?.joined(name)
                configuration.onEvent(.joined(name))
                return
            }
            // The name is taken: by an earlier process with this pid whose lease still runs.
            if joined == false { lossCount += 1 }
        }
    }

    private func leave() async {
        var last = queue
        last.patience = .seconds(2)
        await reportAll(through: last, isLast: true)
        do throws(RedisError) {
            try await tellHosts(through: last)
        } catch {
            // Figures that Redis does not take are no reason to keep the jobs; one that is away takes neither.
            guard error.code == .reply else { return }
            complaints.say(error.message)
        }
        do throws(RedisError) {
            try await last.release(worker: name, leaving: true)
            configuration.history?.left(name)
        } catch {
            // Redis is away: the lease runs out and others take the jobs.
        }
    }
}

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
    let queue: PrefetchQueue
    let manager: ImageManager
    /// Verification, file calls and the glue between them: nothing of it runs on the cooperative pool.
    nonisolated let pool: ThreadPool
    nonisolated let slots: URLSlots
    nonisolated let fault = FaultGate()
    /// Opens on the first signal: nothing new begins.
    nonisolated let draining = Latch()
    /// Opens on the second one, or when the drain timeout has passed: what is in flight is left open.
    nonisolated let stopping = Latch()
    nonisolated let jobs: JobLedger
    nonisolated let bellConnection: RedisConnection
    nonisolated let keeper: CacheKeeper

    var name = ""
    var sequence = 0
    var lossCount = 0
    var batches: [String: BatchContext] = [:]
    /// What this worker was first to settle.
    var totals = PrefetchCounts()
    var lastJobSize = 64
    /// Whether the gate was closed by a failed sync.
    var syncHasFailed = false
    var fatal: PrefetchError?

    /// A worker over its own two connections (one of them waits for work) and a manager.
    package init(configuration: Configuration, redis: RedisConfiguration, queue name: String, manager: ImageManager) {
        self.configuration = configuration
        self.manager = manager
        queue = PrefetchQueue(
            connection: RedisConnection(redis, name: "prefetch-worker"), name: name, patience: nil)
        bellConnection = RedisConnection(redis, name: "prefetch-worker-bell")
        pool = manager.pool
        keeper = CacheKeeper(manager.cache.disk, limits: configuration.cacheLimits)
        jobs = JobLedger(lowWater: 2 * configuration.maxConcurrentDownloads)
        slots = URLSlots(limit: max(256, 4 * configuration.maxConcurrentDownloads))
    }

    /// First-write counts so far.
    public var counts: PrefetchCounts { totals }

    /// Begins to leave: claims nothing, begins nothing, lets what is in flight finish up to the drain timeout, reports, gives
    /// the rest back. ``run()`` then returns. Callable from any thread, more than once.
    public nonisolated func drain() {
        slots.close()
        draining.open()
        fault.open()
        keeper.room.open()
        jobs.room.ring()
        bellConnection.interrupt()
    }

    /// Leaves at once: what is in flight is cancelled and given back; nothing is lost and nothing is counted.
    public nonisolated func stop() {
        drain()
        stopping.open()
    }

    /// Works until it is told to leave, or with `burst` until no batch is running. Returns its own counts.
    /// - Throws: `refused`, `configuration` or `redisUnavailable` where Redis will not have it (wrong password, too old, set to
    ///   evict); a Redis that is only away is waited for.
    public func run() async throws(PrefetchError) -> PrefetchCounts {
        try await meetRedis()
        await register()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.claimLoop() }
            group.addTask { await self.reportLoop() }
            group.addTask { await self.beatLoop() }
            group.addTask { await self.reapLoop() }
            group.addTask { await self.sweepLoop() }
            // The claim loop ends the run; the others go on until it has.
            await group.next()
            group.cancelAll()
        }
        await leave()
        if let fatal { throw fatal }
        return totals
    }

    /// Waits for Redis and looks whether it is one that can keep a queue.
    private func meetRedis() async throws(PrefetchError) {
        let said = Locked(false)
        let onEvent = configuration.onEvent
        let connection = queue.connection
        do throws(RedisError) {
            let facts = try await withRetry(onRetry: { error, _ in
                let isFirst = said.withLock { said in
                    defer { said = true }
                    return !said
                }
                if isFirst { onEvent(.redisAway(error.message)) }
            }) { () async throws(RedisError) in try await connection.serverFacts() }
            if said.withLock({ $0 }) { onEvent(.redisBack) }
            _ = try facts.check()
        } catch {
            throw PrefetchError(error)
        }
    }

    /// Registers under a name nobody has.
    func register() async {
        while !Task.isCancelled && fatal == nil {
            let base = configuration.name.isEmpty ? Self.hostAndPID : configuration.name
            name = lossCount == 0 ? base : "\(base).\(lossCount)"
            sequence = 0
            let about = [("host", Self.host), ("pid", String(getpid())), ("version", PrefetchVersion)]
            let joined = await persist { () async throws(RedisError) in
                try await queue.join(worker: name, lease: configuration.lease, about: about)
            }
            if joined == true {
                configuration.onEvent(.joined(name))
                return
            }
            // The name is taken: by an earlier process with this pid whose lease still runs.
            lossCount += 1
        }
    }

    /// A call to Redis that waits for ever while it is away, and ends the worker where it refuses.
    func persist<Success: Sendable>(
        _ body: () async throws(RedisError) -> Success
    ) async -> Success? {
        do throws(RedisError) {
            return try await body()
        } catch {
            if error.code != .interrupted && fatal == nil {
                fatal = PrefetchError(error)
                drain()
                stopping.open()
            }
            return nil
        }
    }

    private func leave() async {
        var last = queue
        last.patience = .seconds(2)
        await reportAll(through: last)
        do throws(RedisError) {
            try await last.release(worker: name, leaving: true)
        } catch {
            // Redis is away: the lease runs out and others take the jobs.
        }
    }

    static var host: String {
        var buffer = [CChar](repeating: 0, count: 256)
        gethostname(&buffer, buffer.count - 1)
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static var hostAndPID: String { "\(host):\(getpid())" }
}

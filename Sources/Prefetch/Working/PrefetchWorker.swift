internal import Glibc
package import Redis
internal import Threading
public import WebImage

/// One worker process: claims jobs, keeps `maxConcurrentDownloads` transfers in flight across them, and reports each URL once.
///
/// It may die at any instruction: its claims go back after its lease, images it has published are hits for the next worker, and an outcome
/// that was reported twice counts once. A local fault (disk full, no network, Redis unreachable) pauses it without failing URLs.
public actor PrefetchWorker {
    enum Loop: CaseIterable {
        case claims, reports, heartbeats, reaping, healing, sweeps, faults, room, concurrency, hosts, witnesses
    }

    nonisolated let context: WorkerContext
    private nonisolated let heartbeat: Heartbeat
    private nonisolated let bellConnection: RedisConnection
    private let claims: ClaimLoop
    private let reports: ReportLoop
    private let heartbeats: HeartbeatLoop
    private let reaper: ReapLoop
    private let healer: HealLoop
    private let faults: FaultLoop
    private let room: CapacityLoop
    private let adaptation: ConcurrencyLoop
    private let hosts: HostLoop
    private let witnesses: WitnessLoop

    /// A worker over three connections of its own (one waits for work, one is only for heartbeats) and a manager.
    package init(configuration: Configuration, redis: RedisConfiguration, queue name: String, manager: ImageManager) {
        let closed = manager.downloader.blockedEndpoints
        let close: @Sendable (Set<RedisAddress>) -> Void = { closed.close($0) }
        let queue = PrefetchQueue(redis, client: "prefetch-worker", name: name, waitLimit: .zero, onAddresses: close)
        let bellConnection = RedisConnection(
            redis, name: "prefetch-worker-bell", following: queue.keys.root, onAddresses: close)
        let context = WorkerContext(configuration, queue: queue, manager: manager)
        var heart = PrefetchQueue(redis, client: "prefetch-worker-heartbeat", name: name, waitLimit: .zero)
        heart.redis.notice = { [warningLog = context.warningLog] in warningLog.say($0) }
        let (disk, transfers, downloader) = (manager.cache.disk, manager.cache.transfers, manager.downloader)
        let heartbeat = Heartbeat(
            queue: heart, jobs: context.jobs, lease: configuration.lease, hold: context.hold,
            watched: Heartbeat.Watched(
                calls: disk.folder.calls, probe: { _ = context.faults.probe() }, silence: { downloader.silence },
                setHeartbeatsPaused: { transfers.setHeartbeatsPaused($0) }))
        let hasClaimed = WakeSignal()
        self.context = context
        self.heartbeat = heartbeat
        self.bellConnection = bellConnection
        room = CapacityLoop(context)
        adaptation = ConcurrencyLoop(context, room: room)
        reports = ReportLoop(context)
        reaper = ReapLoop(context)
        faults = FaultLoop(context)
        hosts = HostLoop(context)
        claims = ClaimLoop(
            context, room: room, reports: reports, bellConnection: bellConnection, hasClaimed: hasClaimed)
        healer = HealLoop(context, claims: claims, reports: reports)
        witnesses = WitnessLoop(context, claims: claims)
        heartbeats = HeartbeatLoop(
            context, heartbeat: heartbeat, room: room, concurrency: adaptation, hosts: hosts, reports: reports,
            reaper: reaper, claims: claims, witnesses: witnesses, hasClaimed: hasClaimed)
    }

    /// A worker in a program of one's own, over a manager with its own loader, coders and filters.
    /// - Parameters:
    ///   - redisURL: `redis://[user[:password]@]host[:port][/db]` or `unix:///path?db=1`.
    ///   - queue: the name of the queue, 1 to 64 of `A-Z a-z 0-9 _ -`.
    ///   - manager: loads the images. Its downloader must have the concurrency of the configuration.
    ///   - configuration: its settings.
    /// - Throws: `configuration` if the URL or the queue's name is invalid.
    public init(
        redisURL: String, queue: String = "default", manager: ImageManager,
        configuration: Configuration = Configuration()
    ) throws(PrefetchError) {
        guard PrefetchQueue.isValidName(queue) else {
            throw PrefetchError(
                .configuration, "'\(queue)' is not a valid queue name",
                hint: "use 1 to 64 letters, digits, '_' or '-'")
        }
        let redis: RedisConfiguration
        do throws(RedisError) { redis = try RedisConfiguration(url: redisURL) } catch { throw PrefetchError(error) }
        self.init(configuration: configuration, redis: redis, queue: queue, manager: manager)
    }

    /// First-write counts so far.
    public var counts: PrefetchCounts { context.registration.totals }

    var concurrency: Int { room.concurrency }

    /// Version of the host notes it has read; nil before the first.
    var hostsVersion: Int? { hosts.version }

    /// Begins to leave: claims and starts nothing, lets current transfers finish up to the drain timeout, reports, gives the rest back.
    /// ``run()`` then returns. Callable from any thread, more than once.
    public nonisolated func drain() {
        context.drain()
        bellConnection.interrupt()
    }

    /// Leaves at once: current transfers are cancelled and given back; nothing is lost and nothing is counted.
    public nonisolated func stop() {
        drain()
        context.shutdown.drained.open()
        context.shutdown.stopping.open()
    }

    /// Works until it is asked to stop, or with `burst` until no batch is running. Returns its own counts.
    /// - Throws: `refused`, `configuration` or `redisUnavailable` if Redis is unusable (wrong password, too old, set to evict); an
    ///   unreachable Redis is waited for. Only at its start: once registered it waits out any problem of Redis.
    public func run() async throws(PrefetchError) -> PrefetchCounts {
        await context.manager.downloader.treatFiltersAsWorkers()
        context.registration.rules.learn(
            await context.manager.downloader.configuration, context.manager.coder,
            maxImageBytes: context.configuration.maxImageBytes)
        // What holds the processes that decode is known before an image needs one.
        async let _: Void = context.manager.pool.run { [sandbox = context.manager.coder.sandbox] in
            _ = sandbox?.condition()
        }
        guard try await context.registration.begin() else { return counts }
        await context.manager.downloader.shareHosts(limitRate: context.configuration.limitRateOfQueue)
        await room.begin()
        await withTaskGroup(of: Void.self) { group in
            for loop in Loop.allCases { group.addTask { await self.run(loop) } }
            // The end of the claim loop ends the run and the other loops.
            await group.next()
            group.cancelAll()
        }
        await heartbeat.end()
        await reports.end()
        // Before the process ends: TLS must not be taken down under a thread that still uses it.
        await context.redis.queue.connection.close()
        await bellConnection.close()
        return counts
    }

    /// Runs a loop until it ends, as the claim loop does, or its task is cancelled.
    func run(_ loop: Loop) async {
        switch loop {
        case .claims: await claimAndRun()
        case .reports: await reports.run()
        case .heartbeats: await heartbeats.run()
        case .reaping: await reaper.run()
        case .healing: await healer.run()
        case .sweeps: await SweepLoop.run(context)
        case .faults: await faults.run()
        case .room: await room.run()
        case .concurrency: await adaptation.run()
        case .hosts: await hosts.run()
        case .witnesses: await witnesses.run()
        }
    }

    /// Returns when current transfers have ended, or the drain timeout has passed.
    ///
    /// The groups are created here and not in the loop: in a `nonisolated(nonsending)` function the body of a group is nonisolated, and
    /// would run beside the worker's executor.
    private func claimAndRun() async {
        await withTaskGroup(of: Void.self) { timer in
            // Discarding: the other kind keeps 5 KB of every job that has ended, as long as the worker lives.
            await withDiscardingTaskGroup { group in
                await claims.claim(into: &group)
                // Current transfers have the drain timeout; then they are left open, except those that continue in the background.
                let (seconds, drained) = (context.configuration.drainTimeout, context.shutdown.drained)
                timer.addTask {
                    try? await Task.sleep(for: .seconds(seconds))
                    if !Task.isCancelled { drained.open() }
                }
            }
            timer.cancelAll()
        }
    }
}

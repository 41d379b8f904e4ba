internal import Glibc
internal import Redis
internal import Threading
internal import WebImage

/// A worker's identity in Redis. After a lost lease it goes on under another name.
///
/// Changes run on the worker's executor, one after the other; any thread may read.
final class Registration: Sendable {
    /// What the worker refuses by its own settings.
    let rules = WorkerRules()
    private struct State {
        var name = ""
        var sequence = 0
        var losses = 0
        var isJoining = false
        /// URLs this worker was first to settle.
        var totals = PrefetchCounts()
        var settings = QueueWorkers.WorkerSettings()
    }

    private let configuration: PrefetchWorker.Configuration
    private let redis: PersistentQueue
    private let shutdown: Shutdown
    private let didRejoin: @Sendable () async -> Void
    private let state = Locked(State())

    /// * `didRejoin`: called when it is registered under another name: what others knew of it is forgotten.
    init(
        _ configuration: PrefetchWorker.Configuration, redis: PersistentQueue, shutdown: Shutdown,
        didRejoin: @escaping @Sendable () async -> Void
    ) {
        self.configuration = configuration
        self.redis = redis
        self.shutdown = shutdown
        self.didRejoin = didRejoin
    }

    /// Its current name, or the requested one while ``isJoining``.
    var name: String { state.withLock { $0.name } }
    var isJoining: Bool { state.withLock { $0.isJoining } }
    var sequence: Int { state.withLock { $0.sequence } }
    /// URLs this worker was first to settle, under all its names.
    var totals: PrefetchCounts { state.withLock { $0.totals } }
    /// The last settings from `prefetch-coord`.
    var settings: QueueWorkers.WorkerSettings { state.withLock { $0.settings } }

    func didClaim(_ sequence: Int) { state.withLock { $0.sequence = sequence } }

    /// Stores settings. They belong to the process, not to its current name.
    func take(_ settings: QueueWorkers.WorkerSettings) { state.withLock { $0.settings = settings } }

    func count(_ items: [SettledEntry]) {
        state.withLock { state in
            for item in items {
                state.totals[item.outcome] += 1
                state.totals.bytes += item.bytes
            }
        }
    }

    /// Waits for Redis, checks that it can keep a queue, and registers; false if it has to leave first.
    /// - Throws: `refused`, `configuration` or `redisUnavailable` if Redis is unusable.
    nonisolated(nonsending) func begin() async throws(PrefetchError) -> Bool {
        _ = try await redis.first { queue async throws(RedisError) in
            _ = try await queue.connection.serverFacts().check()
        }
        while !shutdown.draining.isOpen {
            let (name, about) = nextName()
            let joined = try await redis.first(retriesUnknownErrors: true) {
                [lease = configuration.lease] queue async throws(RedisError) in
                try await queue.workers.join(worker: name, lease: lease, about: about)
            }
            if isIn(joined, as: name) { return true }
        }
        return false
    }

    /// Registers under a new name after its jobs were reaped: running ones are finished and reported, waiting ones left to others.
    /// * `lost`: the name that was lost; both the heartbeat and the claims may find out.
    nonisolated(nonsending) func rejoin(after lost: String) async {
        let isNews = state.withLock { state in
            guard lost == state.name, !state.isJoining else { return false }
            state.isJoining = true
            state.losses += 1
            return true
        }
        guard isNews else { return }
        configuration.onEvent(.lost(lost))
        defer { state.withLock { $0.isJoining = false } }
        while !Task.isCancelled && !shutdown.draining.isOpen {
            let (name, about) = nextName()
            let joined = await redis.persist(until: shutdown.draining) {
                [lease = configuration.lease] queue async throws(RedisError) in
                try await queue.workers.join(worker: name, lease: lease, about: about)
            }
            if isIn(joined, as: name) { break }
        }
        await didRejoin()
    }

    private func nextName() -> (name: String, about: [(String, String)]) {
        let base = configuration.name.isEmpty ? ThisHost.nameAndPID : configuration.name
        let (name, settings) = state.withLock { state in
            state.name = state.losses == 0 ? base : "\(base).\(state.losses)"
            state.sequence = 0
            return (state.name, state.settings)
        }
        var about = [
            ("host", ThisHost.name), ("pid", String(getpid())), ("version", PrefetchVersion), ("rules", rules.record),
        ]
        if settings.isWorkerPaused { about.append(("paused", "1")) }
        if let count = settings.ownConcurrency { about.append(("wanted", count.description)) }
        return (name, about)
    }

    /// * `joined`: Redis' reply; false: the name is taken, by an earlier process with this pid whose lease is still valid.
    private func isIn(_ joined: Bool?, as name: String) -> Bool {
        if joined == false { state.withLock { $0.losses += 1 } }
        guard joined == true else { return false }
        configuration.onEvent(.joined(name))
        return true
    }
}

internal import Redis
internal import Threading
internal import WebImage

/// The batches a worker has jobs of.
final class BatchContexts: Sendable {
    /// Those without a job here are dropped beyond so many, so that a worker that lives for months does not grow.
    private static let most = 64

    private let redis: PersistentQueue
    private let keeper: CacheKeeper
    private let pool: ThreadPool
    private let downloader: ImageDownloader
    private let mostBytes: Int
    private let contexts = Locked<[BatchIdentity: BatchContext]>([:])

    /// * `mostBytes`: the largest image that is taken.
    init(
        _ redis: PersistentQueue, keeper: CacheKeeper, pool: ThreadPool, downloader: ImageDownloader, mostBytes: Int
    ) {
        self.redis = redis
        self.keeper = keeper
        self.pool = pool
        self.downloader = downloader
        self.mostBytes = mostBytes
    }

    /// What is known of a batch without asking.
    subscript(batch: BatchIdentity) -> BatchContext? { contexts.withLock { $0[batch] } }

    /// The key of a URL in its batch.
    func key(of url: String, in batch: BatchIdentity) -> CacheKey {
        CacheKey(self[batch]?.keyRule.key(for: url) ?? url)
    }

    /// What a batch asks; nil where Redis has no such batch, or a later one of its name.
    nonisolated(nonsending) func context(of batch: BatchIdentity) async -> BatchContext? {
        // One that was gone may be there again: Redis came back with its data.
        if let known = self[batch], !known.over.isOpen { return known }
        let asked = WallClock.now
        let status = await redis.persist { queue async throws(RedisError) in
            try await queue.batches.status(of: batch.id)
        }
        guard let status, let status, status.nonce == batch.nonce else { return nil }
        await protect(status, asked: asked)
        let profile = await profile(of: status.options.requests)
        return contexts.withLock { contexts in
            if let known = contexts[batch], !known.over.isOpen { return known }
            let context = BatchContext(status, profile: profile)
            if status.state != .running { context.over.open() }
            contexts[batch] = context
            return context
        }
    }

    /// How the requests of a batch are made; nil: as those of every other.
    private nonisolated(nonsending) func profile(of settings: RequestSettings) async -> RequestProfile? {
        guard settings != RequestSettings() else { return nil }
        // Every value is in its range, so the downloader takes them all.
        return try? await downloader.profile { [mostBytes] in settings.apply(to: &$0, mostBytes: mostBytes) }
    }

    /// A batch has ended: what is under way of it ends.
    func end(_ batch: BatchIdentity) { self[batch]?.over.open() }

    /// Drops what nobody here needs.
    ///
    /// * `used`: the batches with a job here.
    func forget(allBut used: @autoclosure () -> Set<BatchIdentity>) {
        guard contexts.withLock({ $0.count > Self.most }) else { return }
        let used = used()
        contexts.withLock { contexts in contexts = contexts.filter { used.contains($0.key) } }
    }

    // MARK: The images that must stay

    /// What was fetched since a running batch was made stays, by this machine's clock: Redis' may be another.
    ///
    /// * `asked`: when the status was asked for, seconds since 1970.
    private nonisolated(nonsending) func protect(_ status: BatchStatus, asked: Double) async {
        guard status.state == .running else { return }
        let since = asked - Double(max(0, status.at - status.created)) / 1000
        await pool.run { [keeper] in keeper.protect(status.id, since: since) }
    }

    /// Protects the images of all running batches.
    nonisolated(nonsending) func protectRunning() async {
        let asked = WallClock.now
        let statuses = await redis.persist { queue async throws(RedisError) in
            try await queue.batches.statuses(of: try await queue.catalog.running())
        }
        for status in statuses ?? [] { await protect(status, asked: asked) }
    }

    /// Protects the images of batches that have ended no longer. Where Redis is away that is asked again later: the cache has to be looked
    /// after all the same.
    nonisolated(nonsending) func releaseEnded() async {
        let known = keeper.protectedBatches
        guard !known.isEmpty else { return }
        var queue = redis.queue
        queue.redis.patience = .seconds(1)
        guard let statuses = try? await queue.batches.statuses(of: known) else { return }
        let running = Set(statuses.filter { $0.state == .running }.map(\.id))
        await pool.run { [keeper] in keeper.release(known.filter { !running.contains($0) }) }
        let ended = contexts.withLock { contexts in
            contexts.values.filter { !running.contains($0.batch.id) && known.contains($0.batch.id) }
        }
        for context in ended { context.forgetCookies() }
    }
}

internal import Redis
internal import Threading
internal import WebImage

final class BatchContexts: Sendable {
    /// Contexts without a job here are dropped beyond this number, so that a long-lived worker does not grow.
    private static let most = 64

    private let redis: PersistentQueue
    private let keeper: CacheKeeper
    private let pool: ThreadPool
    private let downloader: ImageDownloader
    private let maxBytes: Int
    private let contexts = Locked<[BatchIdentity: BatchContext]>([:])

    /// * `maxBytes`: the largest accepted image.
    init(
        _ redis: PersistentQueue, keeper: CacheKeeper, pool: ThreadPool, downloader: ImageDownloader, maxBytes: Int
    ) {
        self.redis = redis
        self.keeper = keeper
        self.pool = pool
        self.downloader = downloader
        self.maxBytes = maxBytes
    }

    subscript(batch: BatchIdentity) -> BatchContext? { contexts.withLock { $0[batch] } }

    /// The key of an entry's image; nil: it has none, or its batch is not known here any more.
    func key(of entry: PrefetchJob.Entry, in batch: BatchIdentity) -> CacheKey? {
        guard let rule = self[batch]?.images.keyRule else { return nil }
        return (try? rule.key(for: entry.url, entry.settings)).map { CacheKey($0) }
    }

    /// Nil if Redis has no such batch, or a later one of the same id.
    nonisolated(nonsending) func context(of batch: BatchIdentity) async -> BatchContext? {
        // A batch that was gone may exist again: Redis came back with its data.
        if let known = self[batch], !known.over.isOpen { return known }
        let asked = WallClock.now
        let status = await redis.persist { queue async throws(RedisError) in
            try await queue.batches.status(of: batch.id)
        }
        guard let status, let status, status.nonce == batch.nonce else { return nil }
        await protect(status, asked: asked)
        let profile = await profile(of: status.options)
        return contexts.withLock { contexts in
            if let known = contexts[batch], !known.over.isOpen { return known }
            let context = BatchContext(status, profile: profile)
            if status.state != .running { context.over.open() }
            contexts[batch] = context
            return context
        }
    }

    /// The profile of a batch's requests; nil: the default.
    private nonisolated(nonsending) func profile(of options: BatchOptions) async -> RequestProfile? {
        let (settings, compat) = (options.requests, options.compat)
        guard settings != RequestSettings() || compat != nil else { return nil }
        // The downloader accepts all values: they are in range.
        return try? await downloader.profile { [maxBytes] downloads in
            if let compat { downloads.follow(compat) }
            settings.apply(to: &downloads, maxBytes: maxBytes)
        }
    }

    /// Reads the settings of a batch again where they were changed since; returns whether they were.
    /// * `changes`: how often they were changed by now.
    nonisolated(nonsending) func refresh(_ batch: BatchIdentity, changes: Int) async -> Bool {
        guard let context = self[batch], context.live.changes < changes else { return false }
        let status = await redis.persist { queue async throws(RedisError) in
            try await queue.batches.status(of: batch.id)
        }
        guard let status, let status, status.nonce == batch.nonce else { return false }
        context.take(status, profile: await profile(of: status.options))
        return true
    }

    /// Cancels current transfers of a batch that has ended.
    func end(_ batch: BatchIdentity) { self[batch]?.over.open() }

    /// Drops unused contexts.
    /// * `used`: the batches with a job here.
    func forget(allBut used: @autoclosure () -> Set<BatchIdentity>) {
        guard contexts.withLock({ $0.count > Self.most }) else { return }
        let used = used()
        contexts.withLock { contexts in contexts = contexts.filter { used.contains($0.key) } }
    }

    // MARK: Protected images

    /// Protects images fetched since a running batch was created, by this machine's clock, which may differ from Redis'.
    /// * `asked`: when the status was requested, seconds since 1970.
    private nonisolated(nonsending) func protect(_ status: BatchStatus, asked: Double) async {
        guard status.state == .running else { return }
        let since = asked - Double(max(0, status.at - status.created)) / 1000
        await pool.run { [keeper] in keeper.protect(status.id, since: since) }
    }

    nonisolated(nonsending) func protectRunning() async {
        let asked = WallClock.now
        let statuses = await redis.persist { queue async throws(RedisError) in
            try await queue.batches.statuses(of: try await queue.catalog.running())
        }
        for status in statuses ?? [] { await protect(status, asked: asked) }
    }

    /// Ends the protection of batches that have ended. If Redis is unreachable it is retried later: the cache needs maintenance meanwhile.
    nonisolated(nonsending) func releaseEnded() async {
        let known = keeper.protectedBatches
        guard !known.isEmpty else { return }
        var queue = redis.queue
        queue.redis.waitLimit = .seconds(1)
        guard let statuses = try? await queue.batches.statuses(of: known) else { return }
        let running = Set(statuses.filter { $0.state == .running }.map(\.id))
        await pool.run { [keeper] in keeper.release(known.filter { !running.contains($0) }) }
        let ended = contexts.withLock { contexts in
            contexts.values.filter { !running.contains($0.batch.id) && known.contains($0.batch.id) }
        }
        for context in ended { context.forgetCookies() }
    }
}

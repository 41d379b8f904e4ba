package import Redis

extension PrefetchQueue {
    /// Transfers in flight a worker can be told to have.
    package static let concurrencyRange = 1...1024

    private static let concurrency = script(PackageResources.CONCURRENCY_lua)

    /// Sets how many transfers a worker has in flight, nil = all workers, those to come included.
    ///
    /// * `count`: of ``concurrencyRange``; nil: what was said to all, or what it was started with.
    /// Returns how many workers are told; 0 for a worker that is not registered.
    package func setConcurrency(_ count: Int?, worker: String?) async throws(RedisError) -> Int {
        try await run(
            Self.concurrency, [RedisArgument(worker ?? ""), RedisArgument(count.map { String($0) } ?? "")]
        ).int ?? 0
    }

    /// What was said to all workers of a queue.
    package struct QueueOrders: Sendable, Equatable {
        /// Whether nothing is claimed of any batch.
        package var isPaused = false
        /// Transfers in flight a worker; nil: as each was started.
        package var concurrency: Int?
    }

    /// What was said to all workers.
    package func queueOrders() async throws(RedisError) -> QueueOrders {
        let reply = try await read([["MGET", RedisArgument(keys.paused), RedisArgument(keys.concurrency)]])[0].get()
        let values = reply.array ?? []
        return QueueOrders(isPaused: values.first?.isNull == false, concurrency: values.last?.int)
    }
}

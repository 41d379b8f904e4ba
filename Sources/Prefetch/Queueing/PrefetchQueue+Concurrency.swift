package import Redis

extension PrefetchQueue {
    /// Transfers in flight a worker can be told to have.
    package static let concurrencyRange = 1...1024

    // CONCURRENCY: how many transfers workers have in flight, for one worker or for all, those that join later included. They are told
    // with their next sign of life.
    // ARGV: worker, or "" for all; number, or "" for what each was started with. Result: workers that are told; for one worker 0 where
    // it is not registered. What is said to all replaces what was said to single ones. Again: the same. Cost: O(workers).
    private static let concurrency = script(
        "CONCURRENCY",
        #"""
        local worker, count = ARGV[1], ARGV[2]
        local function tell(name)
          if count ~= '' and worker ~= '' then
            redis.call('HSET', K .. ':w:' .. name, 'wanted', count)
          else
            redis.call('HDEL', K .. ':w:' .. name, 'wanted')
          end
        end
        if worker ~= '' then
          if not redis.call('ZSCORE', K .. ':workers', worker) then return 0 end
          tell(worker)
          return 1
        end
        if count == '' then redis.call('DEL', K .. ':concurrency') else redis.call('SET', K .. ':concurrency', count) end
        local all = redis.call('ZRANGE', K .. ':workers', 0, -1)
        for _, name in ipairs(all) do tell(name) end
        return #all
        """#)

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

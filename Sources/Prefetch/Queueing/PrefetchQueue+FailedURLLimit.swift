package import Redis

extension PrefetchQueue {
    /// How long the list of failed URLs may become.
    package struct FailedURLLimit: Sendable, Equatable {
        /// The URLs that batches may have listed together, 500,000 by default; 0 = no limit. Those added by hand do not count.
        package var most = PrefetchKeys.failedLimitDefault
        /// Whether somebody has said so.
        package var isSet = false
        /// How many have gone because there were more.
        package var removed = 0
    }

    /// What limits the list of failed URLs.
    package func failedURLLimit() async throws(RedisError) -> FailedURLLimit {
        let reply = try await read([["HMGET", RedisArgument(keys.failedLimit), "max", "removed"]])[0].get()
        let values = reply.array ?? []
        var limit = FailedURLLimit()
        if let most = values.first?.count { (limit.most, limit.isSet) = (most, true) }
        limit.removed = values.last?.count ?? 0
        return limit
    }

    /// Sets how many URLs batches may have listed; 0 = no limit, nil = as by default. Where there are more the oldest go, some with each
    /// sign of life of a worker and each report of failures.
    package func setFailedURLLimit(_ most: Int?) async throws(RedisError) {
        let key = RedisArgument(keys.failedLimit)
        _ = try await read([most.map { ["HSET", key, "max", RedisArgument($0)] } ?? ["HDEL", key, "max"]])[0].get()
    }
}

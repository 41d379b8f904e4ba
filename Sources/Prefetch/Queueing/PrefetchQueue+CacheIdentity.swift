internal import Redis

extension PrefetchQueue {
    // CACHE: a worker says into which cache it fetches a batch; the first one's word stands.
    // ARGV: batch, id of the cache. Result: the id the batch has, or nothing where it is gone.
    // Again: the same. Cost: O(1).
    private static let cache = script(
        "CACHE",
        #"""
        if redis.call('EXISTS', batch(ARGV[1])) == 0 then return false end
        redis.call('HSETNX', batch(ARGV[1]), 'cache', ARGV[2])
        return redis.call('HGET', batch(ARGV[1]), 'cache')
        """#)

    /// Says into which cache a batch is fetched, unless that is said; returns the id the batch has, nil where it is gone.
    func setCache(of batch: String, id: String) async throws(RedisError) -> String? {
        try await run(Self.cache, [RedisArgument(batch), RedisArgument(id)]).string
    }
}

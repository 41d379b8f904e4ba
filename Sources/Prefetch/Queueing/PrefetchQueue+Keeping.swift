internal import Redis

extension PrefetchQueue {
    // KEEP: a worker says which jobs it has; what else stands under its name goes back without blame. For after a restart of Redis, which
    // may have forgotten that a job was reported to its end or given back: its worker has no use for it any more, and lives on, so
    // nobody would ever reap it.
    // ARGV: worker, its claims. Result: jobs put back, or -1 where the worker is not registered.
    // Again: nothing more. Cost: O(jobs).
    private static let keep = script(
        "KEEP",
        #"""
        local worker, has, n = ARGV[1], {}, 0
        if not redis.call('ZSCORE', K .. ':workers', worker) then return -1 end
        for i = 2, #ARGV do has[ARGV[i]] = true end
        for _, name in ipairs(redis.call('HKEYS', own(worker))) do
          if name:sub(1, 1) ~= '#' and not has[name] then
            local payload = redis.call('HGET', own(worker), name)
            redis.call('HDEL', own(worker), name)
            if giveBack(name, payload) then n = n + 1 end
          end
        end
        local marked = redis.call('HGET', own(worker), '#mark')
        if marked and not has[marked] then redis.call('HDEL', own(worker), '#mark') end
        return n
        """#)

    /// Gives back what Redis thinks the worker has, but for these claims; returns how many, nil where the worker is not registered.
    func keep(worker: String, jobs: [String]) async throws(RedisError) -> Int? {
        let count = try await run(Self.keep, [RedisArgument(worker)] + jobs.map { RedisArgument($0) }).int ?? -1
        return count < 0 ? nil : count
    }
}

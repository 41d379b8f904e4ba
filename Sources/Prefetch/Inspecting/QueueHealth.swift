internal import Redis

/// What keeps a whole queue from going on, as of one moment.
package struct QueueHealth: Sendable, Equatable {
    /// Bytes Redis uses, and may use (0 = no limit).
    package var usedMemory = 0, maxMemory = 0
    /// Elements of job lists that were no jobs.
    package var dead = 0
    /// Workers that were lost within ten minutes.
    package var lost: [String] = []
    /// Running batches that cannot be worked on, and why.
    package var broken: [String: String] = [:]

    /// Hosts that give no answer, or asked to be left alone.
    package var hosts: [TroubledHost] = []

    /// How long the list of failed URLs may become, and how many went because there were more.
    package var failedURLLimit = FailedURLList.Limit()

    /// Whether a feeder said within 5 s that Redis refused its jobs. The memory in use may be below maxmemory by less than one push then.
    package var hasRefusedJobs = false

    /// Whether Redis takes no new jobs: workers go on, and what they take makes room.
    package var isFull: Bool { maxMemory > 0 && (usedMemory >= maxMemory || hasRefusedJobs) }

    /// Looks. Costs a pass over the names of workers where Redis has at most a million keys.
    package static func read(_ queue: PrefetchQueue) async throws(PrefetchError) -> QueueHealth {
        var health = QueueHealth()
        do throws(RedisError) {
            let facts = try await queue.connection.serverFacts()
            (health.usedMemory, health.maxMemory) = (facts.usedMemory, facts.maxmemory)
            let replies = try await queue.redis.read(
                queue.redis.clockCommands + [["LLEN", RedisArgument(queue.keys.dead)]])
            health.dead = replies[2].int ?? 0
            let now = try ScriptRunner.time(replies)
            health.lost = try await queue.workerRecords.lost(since: now - 600_000)
            health.failedURLLimit = try await queue.failedURLs.limit()
            let running = try await queue.catalog.running()
            if !running.isEmpty { health.hosts = try await queue.hosts.troubled() }
            guard !running.isEmpty else { return health }
            let why = try await queue.redis.read(
                running.map { ["HMGET", RedisArgument(queue.keys.batch($0)), "broken", "full", "fed"] })
            for (id, reply) in zip(running, why) {
                if let error = reply.error { health.broken[id] = error.text }
                guard let fields = reply.array, fields.count == 3 else { continue }
                if let text = fields[0].string { health.broken[id] = text }
                let (full, fed) = (fields[1].count ?? 0, fields[2].count ?? 0)
                if full > 0, full >= fed, now - full <= 5_000 { health.hasRefusedJobs = true }
            }
        } catch {
            throw PrefetchError(error)
        }
        return health
    }
}

package import Redis

/// What a queue comes to at one moment, for whoever draws it over time.
package struct QueueFigures: Sendable {
    /// The newest batches, newest first.
    package var batches: [BatchStatus] = []
    /// Batches that are neither done nor cancelled.
    package var running = 0
    /// Jobs on the lists of running batches, and jobs that workers have.
    package var jobsWaiting = 0, jobsClaimed = 0
    /// Whether nothing of any batch begins.
    package var isPaused = false
    /// URLs on the list of failed ones.
    package var failedURLs = 0
    /// Elements of job lists that were no jobs.
    package var dead = 0
    /// Whoever is registered, by name.
    package var workers: [String: BatchLook.Worker] = [:]
    /// Workers that were lost since the queue was made, the jobs that others got of theirs, and the URLs of those that were open.
    package var lostWorkers = 0, reclaimedJobs = 0, reclaimedURLs = 0
    /// Bytes that Redis uses, and may use (0 = no limit).
    package var usedMemory = 0, maxMemory = 0

    /// Nothing.
    package init() {}
}

extension PrefetchQueue {
    /// Reads the figures of the queue. Costs some commands, two a worker, one a running batch and one for each of the newest; nothing
    /// depends on the number of URLs.
    package func figures(mostBatches: Int = 20) async throws(RedisError) -> QueueFigures {
        var figures = QueueFigures()
        let newest = try await browse(most: mostBatches)
        figures.batches = newest.batches
        (figures.isPaused, figures.failedURLs) = (newest.isPaused, newest.failedURLs)
        let facts = try await connection.serverFacts()
        (figures.usedMemory, figures.maxMemory) = (facts.usedMemory, facts.maxmemory)
        let replies = try await read(
            clockCommands + [
                ["LLEN", RedisArgument(keys.dead)], ["ZRANGE", RedisArgument(keys.workers), "0", "-1", "WITHSCORES"],
                ["HMGET", RedisArgument(keys.losses), "workers", "jobs", "urls"],
            ])
        let at = try Self.time(replies)
        figures.dead = replies[2].int ?? 0
        let losses = (replies[4].array ?? []).map { $0.count ?? 0 }
        if losses.count == 3 {
            (figures.lostWorkers, figures.reclaimedJobs, figures.reclaimedURLs) = (losses[0], losses[1], losses[2])
        }
        let leases = (try replies[3].get().fields ?? [:]).compactMapValues(\.int).sorted { $0.key < $1.key }
        let running = try await runningBatches()
        figures.running = running.count
        let rest = try await read(
            running.map { ["LLEN", RedisArgument(keys.jobs($0))] }
                + leases.flatMap { name, _ -> [[RedisArgument]] in
                    [["HGETALL", RedisArgument(keys.worker(name))], ["HKEYS", RedisArgument(keys.owned(by: name))]]
                })
        // A key of a wrong type is its own batch's fault.
        figures.jobsWaiting = rest.prefix(running.count).reduce(0) { $0 + ($1.int ?? 0) }
        for (position, lease) in leases.enumerated() {
            let about = rest[running.count + 2 * position].fields ?? [:]
            figures.workers[lease.key] = BatchLook.Worker(
                WorkerReport(fields: about.compactMapValues(\.string)), leaseLeft: lease.value - at)
            figures.jobsClaimed += (rest[running.count + 2 * position + 1].array ?? [])
                .count { $0.string?.hasPrefix("#") == false }
        }
        return figures
    }
}

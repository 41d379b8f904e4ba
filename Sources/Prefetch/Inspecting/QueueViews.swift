package import Redis
internal import WebImage

/// A queue or a batch as of one moment, read by few commands.
package struct QueueViews: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    private static let look = QueueScript.script(PackageResources.LOOK_lua)

    /// A batch at one moment; nil where Redis has none of this id. One whose deadline has passed is ended by this look, where no worker has
    /// done it.
    package func look(at id: String) async throws(RedisError) -> BatchLook? {
        let look = try await reading(of: id)
        guard let look, look.status.isPastDeadline else { return look }
        guard await QueueBatches(redis).endedDue() else { return look }
        return try await reading(of: id)
    }

    private func reading(of id: String) async throws(RedisError) -> BatchLook? {
        let reply = try await redis.run(Self.look, [RedisArgument(id)]).array ?? []
        guard reply.count == 8, let at = reply[0].int else { return nil }
        let fields = reply[1].fields ?? [:]
        guard let status = BatchStatus(id: id, fields: fields, at: at, isQueuePaused: reply[7].int == 1) else {
            return nil
        }
        var look = BatchLook(at: at, status: status, counts: QueueResults.countsByWorker(reply[2].fields ?? [:]))
        for (name, value) in fields where name.first == "h" && name.utf8.count == 4 {
            if let code = Int(name.dropFirst()), let number = value.count { look.httpStatuses[code] = number }
        }
        for (name, value) in reply[3].fields ?? [:] {
            let numbers = (value.string ?? "").split(separator: " ").compactMap { Int(plausible: $0) }
                .map { max(0, $0) }
            guard numbers.count == 3 else { continue }
            look.hosts[name] = BatchLook.Host(finished: numbers[0], skipped: numbers[1], bytes: numbers[2])
        }
        look.waitingJobs = reply[4].int ?? 0
        let names = reply[5].array ?? []
        for (position, about) in (reply[6].array ?? []).enumerated() where 2 * position + 1 < names.count {
            guard let name = names[2 * position].string, let end = names[2 * position + 1].int else { continue }
            look.workers[name] = BatchLook.Worker(
                WorkerReport(fields: (about.fields ?? [:]).compactMapValues(\.string)), leaseLeft: end - at)
        }
        return look
    }

    private static let browse = QueueScript.script(PackageResources.BROWSE_lua)

    /// The newest batches, hosts in trouble, the number of failed URLs, and what Redis takes.
    package func browse(most: Int = 12) async throws(RedisError) -> QueueLook {
        let reply = try await redis.run(Self.browse, [RedisArgument(most)]).array ?? []
        var look = QueueLook()
        guard let at = reply.first?.int, reply.count >= 4 else { return look }
        look.at = at
        look.failedURLs = reply[1].int ?? 0
        look.isPaused = reply[2].int == 1
        look.hosts = QueueHosts.troubled(reply[3].fields ?? [:], at: at)
        for position in stride(from: 4, to: reply.count - 1, by: 2) {
            guard let id = reply[position].string,
                let status = BatchStatus(
                    id: id, fields: reply[position + 1].fields ?? [:], at: at, isQueuePaused: look.isPaused)
            else { continue }
            look.batches.append(status)
        }
        let memory = try await redis.read([["INFO", "memory"]])[0].string ?? ""
        look.memory =
            memory.split(whereSeparator: \.isNewline).first { $0.hasPrefix("used_memory:") }
            .flatMap { Int($0.dropFirst("used_memory:".count)) } ?? 0
        return look
    }

    /// Reads the figures of the queue. Costs some commands, two a worker, one a running batch and one for each of the newest; nothing
    /// depends on the number of URLs.
    package func figures(mostBatches: Int = 20) async throws(RedisError) -> QueueFigures {
        var figures = QueueFigures()
        let newest = try await browse(most: mostBatches)
        figures.batches = newest.batches
        (figures.isPaused, figures.failedURLs) = (newest.isPaused, newest.failedURLs)
        let facts = try await redis.connection.serverFacts()
        (figures.usedMemory, figures.maxMemory) = (facts.usedMemory, facts.maxmemory)
        let replies = try await redis.read(
            redis.clockCommands + [
                ["LLEN", RedisArgument(redis.keys.dead)],
                ["ZRANGE", RedisArgument(redis.keys.workers), "0", "-1", "WITHSCORES"],
                ["HMGET", RedisArgument(redis.keys.losses), "workers", "jobs", "urls"],
            ])
        let at = try ScriptRunner.time(replies)
        figures.dead = replies[2].int ?? 0
        let losses = (replies[4].array ?? []).map { $0.count ?? 0 }
        if losses.count == 3 {
            (figures.lostWorkers, figures.reclaimedJobs, figures.reclaimedURLs) = (losses[0], losses[1], losses[2])
        }
        let leases = (try replies[3].get().fields ?? [:]).compactMapValues(\.int).sorted { $0.key < $1.key }
        let running = try await QueueCatalog(redis).running()
        figures.running = running.count
        let rest = try await redis.read(
            running.map { ["LLEN", RedisArgument(redis.keys.jobs($0))] }
                + leases.flatMap { name, _ -> [[RedisArgument]] in
                    [
                        ["HGETALL", RedisArgument(redis.keys.worker(name))],
                        ["HKEYS", RedisArgument(redis.keys.owned(by: name))],
                    ]
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

package import Redis

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
        look.workers = BatchLook.Worker.read(reply[5], said: reply[6], at: at)
        return look
    }

    private static let browse = QueueScript.script(PackageResources.BROWSE_lua)

    /// The queue at one moment, with so many of its newest batches. Two commands, whatever the queue has.
    package func snapshot(newest: Int = 20) async throws(RedisError) -> QueueSnapshot {
        let reply = try await redis.run(Self.browse, [RedisArgument(newest)]).array ?? []
        return QueueSnapshot(reply, try await redis.connection.serverFacts())
    }
}

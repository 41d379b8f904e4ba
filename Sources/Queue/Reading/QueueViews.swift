package import Redis

/// A queue or a batch at one moment, read with few commands.
package struct QueueViews: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    private static let script = QueueScript.script(PackageResources.SHOW_lua)

    /// A batch at one moment; nil if Redis has no such batch. Ends the batch if its deadline has passed and no worker has ended it.
    package func snapshot(of id: String) async throws(RedisError) -> BatchSnapshot? {
        let snapshot = try await reading(of: id)
        guard let snapshot, snapshot.status.isPastDeadline else { return snapshot }
        guard await QueueBatches(redis).endDueIfWritable() else { return snapshot }
        return try await reading(of: id)
    }

    private func reading(of id: String) async throws(RedisError) -> BatchSnapshot? {
        let reply = try await redis.run(Self.script, [RedisArgument(id)]).array ?? []
        guard reply.count == 8, let at = reply[0].int else { return nil }
        let fields = reply[1].fields ?? [:]
        guard let status = BatchStatus(id: id, fields: fields, at: at, isQueuePaused: reply[7].int == 1) else {
            return nil
        }
        var snapshot = BatchSnapshot(
            at: at, status: status, counts: QueueResults.countsByWorker(reply[2].fields ?? [:]))
        for (name, value) in fields where name.first == "h" && name.utf8.count == 4 {
            if let code = Int(name.dropFirst()), let number = value.count { snapshot.httpStatuses[code] = number }
        }
        for (name, value) in reply[3].fields ?? [:] {
            let numbers = (value.string ?? "").split(separator: " ").compactMap { Int(plausible: $0) }
                .map { max(0, $0) }
            guard numbers.count == 3 else { continue }
            snapshot.hosts[name] = BatchSnapshot.Host(finished: numbers[0], skipped: numbers[1], bytes: numbers[2])
        }
        snapshot.waitingJobs = reply[4].int ?? 0
        snapshot.workers = WorkerRecord.present(reply[5], said: reply[6], at: at)
        return snapshot
    }

    private static let browse = QueueScript.script(PackageResources.BROWSE_lua)

    /// The queue at one moment, with its `newest` newest batches. Two commands, whatever the size of the queue.
    package func snapshot(newest: Int = 20) async throws(RedisError) -> QueueSnapshot {
        let reply = try await redis.run(Self.browse, [RedisArgument(newest)]).array ?? []
        return QueueSnapshot(reply, try await redis.connection.serverFacts())
    }
}

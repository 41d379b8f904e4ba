internal import Redis

/// Everything Redis has that concerns one batch, as of one moment: read in one MULTI/EXEC.
struct BatchSnapshot {
    var fields: [String: RedisValue]
    /// One byte per URL index as far as Redis has them; those of a batch that is over may be read later, they do not change.
    var outcomes: [UInt8]
    var detailsKept: Int
    var workerCounts: [String: RedisValue]
    /// Payloads of the batch's list.
    var jobs: [[UInt8]]
    /// How often the batch is in a ready list, and whether any has an element.
    var timesReady: Int
    var isAnyReady: Bool
    var bells: Int
    var isInRunning: Bool
    var workers: Set<String>
    /// What each worker has claimed: name and payload, without the fields about the claim itself.
    var owned: [String: [(name: String, payload: [UInt8])]]

    private static let step = 1 << 20

    /// Reads it; nil where Redis has no such batch.
    static func read(_ batch: String, queue: PrefetchQueue) async throws(RedisError) -> BatchSnapshot? {
        let keys = queue.keys
        while true {
            let state = try await queue.read([["HGET", RedisArgument(keys.batch(batch)), "state"]])[0].get().string
            let isOver = state != "running"
            let owners = try await owners(queue)
            let commands: [[RedisArgument]] =
                [
                    ["HGETALL", RedisArgument(keys.batch(batch))],
                    ["GETRANGE", RedisArgument(keys.outcomes(batch)), "0", isOver ? "0" : "-1"],
                    ["HLEN", RedisArgument(keys.skipped(batch))],
                    ["HGETALL", RedisArgument(keys.workerCounts(batch))],
                    ["LRANGE", RedisArgument(keys.jobs(batch)), "0", "-1"],
                    ["LLEN", RedisArgument(keys.bell)],
                    ["SISMEMBER", RedisArgument(keys.running), RedisArgument(batch)],
                    ["ZRANGE", RedisArgument(keys.workers), "0", "-1"],
                ]
                + PrefetchPriority.allCases.map { ["LRANGE", RedisArgument(keys.ready($0)), "0", "-1"] }
                + owners.map { ["HGETALL", RedisArgument(keys.owned(by: $0))] }
            let replies = try await atomically(commands, queue)
            let workers = Set((replies[7].array ?? []).compactMap(\.string))
            // One that joined since its name was asked for may have claimed what would be missed here.
            guard workers.isSubset(of: owners) else { continue }
            let ready = replies[8..<11].flatMap { $0.array ?? [] }.compactMap(\.string)
            var snapshot = BatchSnapshot(
                fields: replies[0].fields ?? [:], outcomes: replies[1].bytes ?? [], detailsKept: replies[2].int ?? 0,
                workerCounts: replies[3].fields ?? [:], jobs: (replies[4].array ?? []).compactMap(\.bytes),
                timesReady: ready.count { $0 == batch }, isAnyReady: !ready.isEmpty, bells: replies[5].int ?? 0,
                isInRunning: replies[6].int == 1, workers: workers, owned: [:])
            for (owner, reply) in zip(owners, replies.dropFirst(11)) {
                let claimed = reply.fields ?? [:]
                guard !claimed.isEmpty else { continue }
                snapshot.owned[owner] = claimed.compactMap { name, payload in
                    name.hasPrefix("#") ? nil : (name, payload.bytes ?? [])
                }
            }
            guard !snapshot.fields.isEmpty else { return nil }
            if isOver { snapshot.outcomes = try await allOutcomes(batch, queue) }
            return snapshot
        }
    }

    /// Workers that are registered or have a hash of claims.
    private static func owners(_ queue: PrefetchQueue) async throws(RedisError) -> [String] {
        let prefix = queue.keys.owned(by: "")
        var names = Set(try await queue.workers())
        var cursor = "0"
        repeat {
            let reply =
                try await queue.read([
                    ["SCAN", RedisArgument(cursor), "MATCH", RedisArgument(prefix + "*"), "COUNT", "1000"]
                ])[0].get().array ?? []
            cursor = reply.first?.string ?? "0"
            for key in (reply.last?.array ?? []).compactMap(\.string) {
                names.insert(String(key.dropFirst(prefix.count)))
            }
        } while cursor != "0"
        return names.sorted()
    }

    private static func atomically(
        _ commands: [[RedisArgument]], _ queue: PrefetchQueue
    ) async throws(RedisError) -> [RedisValue] {
        let replies = try await queue.read([["MULTI"]] + commands + [["EXEC"]])
        let values = try replies[replies.count - 1].get().array ?? []
        for value in values { _ = try value.get() }
        return values
    }

    private static func allOutcomes(_ batch: String, _ queue: PrefetchQueue) async throws(RedisError) -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let part =
                try await queue.read([
                    [
                        "GETRANGE", RedisArgument(queue.keys.outcomes(batch)), RedisArgument(bytes.count),
                        RedisArgument(bytes.count + step - 1),
                    ]
                ])[0].get().bytes ?? []
            bytes += part
            if part.count < step { return bytes }
        }
    }
}

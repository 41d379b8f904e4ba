package import Redis

/// Everything Redis has that concerns one batch at one moment, read by one script.
package struct BatchContents {
    package var fields: [String: RedisValue]
    /// One byte per URL index as far as Redis has them. Those of a batch that is over may be read later: they do not change.
    package var outcomes: [UInt8]
    package var detailsKept: Int
    package var records: [String: [UInt8]]
    package var workerCounts: [String: RedisValue]
    package var jobs: [[UInt8]]
    /// How often the batch is in a ready list, and whether any ready list has an element.
    package var timesReady: Int
    package var isAnyReady: Bool
    package var bells: Int
    package var isQueuePaused: Bool
    package var isInRunning: Bool
    package var workers: Set<String>
    /// Claims of each worker: name and payload, without the fields about the claim itself.
    package var owned: [String: [(name: String, payload: [UInt8])]]
    /// Claims that their worker did not name in its last heartbeat.
    package var unheld: [String: Set<String>] = [:]
    /// Deaths by job; `job!`: deaths under the mark.
    package var tries: [String: Int]

    private static let step = 1 << 20

    private static let snapshot = QueueScript.script(PackageResources.SNAPSHOT_lua)

    /// Nil if Redis has no such batch.
    /// * `owners`: result of an earlier ``owners(_:)``, which scans all keys and serves any number of batches. nil: scan now.
    package static func read(
        _ batch: String, queue: PrefetchQueue, owners known: [String]? = nil
    ) async throws(RedisError) -> BatchContents? {
        let keys = queue.keys
        var known = known
        while true {
            let state = try await queue.redis.read([["HGET", RedisArgument(keys.batch(batch)), "state"]])[0].get()
                .string
            let isOver = state != "running"
            let owners: [String]
            if let found = known { owners = found } else { owners = try await Self.owners(queue) }
            known = nil
            let replies =
                try await queue.redis.run(
                    snapshot, [RedisArgument(batch), isOver ? "0" : "-1"] + owners.map { RedisArgument($0) }
                ).array ?? []
            guard replies.count == 14 + owners.count else { return nil }
            let workers = Set((replies[7].array ?? []).compactMap(\.string))
            // A worker that joined since the names were read may have claims that would be missed here.
            guard workers.isSubset(of: owners) else { continue }
            let ready = replies[8..<11].map { ($0.array ?? []).map { $0.int ?? 0 } }
            var snapshot = BatchContents(
                fields: replies[0].fields ?? [:], outcomes: replies[1].bytes ?? [], detailsKept: replies[2].int ?? 0,
                records: (replies[13].fields ?? [:]).mapValues { $0.bytes ?? [] },
                workerCounts: replies[3].fields ?? [:], jobs: (replies[4].array ?? []).compactMap(\.bytes),
                timesReady: ready.reduce(0) { $0 + ($1.last ?? 0) }, isAnyReady: ready.contains { $0.first != 0 },
                bells: replies[5].int ?? 0, isQueuePaused: replies[11].int == 1, isInRunning: replies[6].int == 1,
                workers: workers, owned: [:], tries: (replies[12].fields ?? [:]).compactMapValues(\.int))
            for (owner, reply) in zip(owners, replies.dropFirst(14)) {
                let claimed = reply.fields ?? [:]
                guard !claimed.isEmpty else { continue }
                if let names = claimed["#unheld"]?.string {
                    snapshot.unheld[owner] = Set(names.split(separator: " ").map(String.init))
                }
                snapshot.owned[owner] = claimed.compactMap { name, payload in
                    name.hasPrefix("#") ? nil : (name, payload.bytes ?? [])
                }
            }
            guard !snapshot.fields.isEmpty else { return nil }
            if isOver {
                snapshot.outcomes = try await allOutcomes(batch, queue)
                snapshot.records = try await queue.results.records(of: batch)
            }
            return snapshot
        }
    }

    /// Workers that are registered or have a hash of claims.
    package static func owners(_ queue: PrefetchQueue) async throws(RedisError) -> [String] {
        let owners = Set(try await queue.keySpace.owners())
        do throws(RedisError) {
            return owners.union(try await queue.workers.names()).sorted()
        } catch {
            // The check of types reports which key it is, and checks nothing else then.
            guard error.replyCode == "WRONGTYPE" else { throw error }
            return owners.sorted()
        }
    }

    private static func allOutcomes(_ batch: String, _ queue: PrefetchQueue) async throws(RedisError) -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let part =
                try await queue.redis.read([
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

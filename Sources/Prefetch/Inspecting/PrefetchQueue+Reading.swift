package import Redis
package import WebImage

extension PrefetchQueue {
    /// Ids of all batches Redis still has, oldest first.
    package func batches() async throws(RedisError) -> [String] {
        let ids = (try await read([["ZRANGE", RedisArgument(keys.batches), "0", "-1"]])[0].get().array ?? [])
            .compactMap(\.string)
        guard !ids.isEmpty else { return [] }
        let present = try await read(ids.map { ["EXISTS", RedisArgument(keys.batch($0))] })
        // Batches leave Redis by their expiry; what is left of them in the list goes here.
        let gone = zip(ids, present).filter { $0.1.int != 1 }.map(\.0)
        if !gone.isEmpty {
            _ = try await read([["ZREM", RedisArgument(keys.batches)] + gone.map { RedisArgument($0) }])
        }
        return zip(ids, present).filter { $0.1.int == 1 }.map(\.0)
    }

    /// The batch a person means: an id, a unique beginning of one, or nothing for the newest.
    /// - Throws: `notFound` where there is none, or several begin so.
    package func resolve(_ name: String?) async throws(PrefetchError) -> String {
        let ids: [String]
        do throws(RedisError) { ids = try await batches() } catch { throw PrefetchError(error) }
        guard let name, !name.isEmpty else {
            if let newest = ids.last { return newest }
            let others = await otherQueues(with: "").prefix(3).map { "'\($0)'" }.joined(separator: ", ")
            throw PrefetchError(
                .notFound, "there is no batch yet" + (others.isEmpty ? "" : " in queue '\(queueName)'"),
                hint: others.isEmpty
                    ? "make one: prefetch-coord run urls.txt, or submit urls.txt"
                    : "queue \(others) has some: add --queue NAME")
        }
        if ids.contains(name) { return name }
        let matches = ids.filter { $0.hasPrefix(name) }
        if matches.count == 1 { return matches[0] }
        if matches.isEmpty {
            let elsewhere = await otherQueues(with: name).prefix(3).map { "'\($0)'" }.joined(separator: ", ")
            let known = ids.suffix(3).reversed().joined(separator: ", ")
            let hint =
                if !elsewhere.isEmpty {
                    "this is queue '\(queueName)', and queue \(elsewhere) has one: add --queue NAME"
                } else if ids.isEmpty {
                    "there is none at all in queue '\(queueName)'; --queue names another"
                } else {
                    "the newest are \(known) in queue '\(queueName)'; all: prefetch-coord status"
                }
            throw PrefetchError(.notFound, "there is no batch '\(name)'", hint: hint)
        }
        throw PrefetchError(
            .notFound, "'\(name)' is the beginning of \(matches.count) batches",
            hint: "give more of it: \(matches.prefix(5).joined(separator: ", "))")
    }

    /// A batch as it is now; nil where Redis has none of this id.
    package func status(of id: String) async throws(RedisError) -> BatchStatus? {
        try await statuses(of: [id]).first
    }

    /// Several batches as they are now, in one round trip; those that are gone are left out. One whose deadline has passed is ended by
    /// this look, where no worker has done it.
    package func statuses(of ids: [String]) async throws(RedisError) -> [BatchStatus] {
        var found = try await readings(of: ids)
        for _ in 0...(ids.count / 16) where found.contains(where: \.isPastDeadline) {
            try await endDue()
            found = try await readings(of: ids)
        }
        return try await withoutDeadLinks(found)
    }

    private func readings(of ids: [String]) async throws(RedisError) -> [BatchStatus] {
        let replies = try await read(
            clockCommands + [["EXISTS", RedisArgument(keys.paused)]]
                + ids.map { ["HGETALL", RedisArgument(keys.batch($0))] })
        let now = try Self.time(replies)
        let isPaused = try replies[2].get().int == 1
        var result: [BatchStatus] = []
        for (id, reply) in zip(ids, replies.dropFirst(3)) {
            // Somebody wrote something else to this key: no batch any more, and no reason to say nothing of the others.
            if reply.error?.code == "WRONGTYPE" { continue }
            if let status = BatchStatus(
                id: id, fields: try reply.get().fields ?? [:], at: now, isQueuePaused: isPaused)
            {
                result.append(status)
            }
        }
        return result
    }

    /// A link to a retry counts where that is one: its batch may be gone, or its name another batch's.
    private func withoutDeadLinks(_ statuses: [BatchStatus]) async throws(RedisError) -> [BatchStatus] {
        let links = statuses.compactMap(\.retriedBy)
        guard !links.isEmpty else { return statuses }
        let replies = try await read(links.map { ["HGET", RedisArgument(keys.batch($0)), "retry_of"] })
        var parents = replies.map(\.string)
        return statuses.map { status in
            var status = status
            if status.retriedBy != nil, parents.removeFirst() != status.id { status.retriedBy = nil }
            return status
        }
    }

    /// First-write counts of each worker that reported of a batch, also of those that are dead: they add up to the batch's.
    package func workerCounts(of id: String) async throws(RedisError) -> [String: PrefetchCounts] {
        let fields = try await read([["HGETALL", RedisArgument(keys.workerCounts(id))]])[0].get().fields ?? [:]
        return Self.countsByWorker(fields)
    }

    /// Outcome bytes of a range of URL indices; 0 = open.
    package func outcomes(of id: String, range: Range<Int>) async throws(RedisError) -> [UInt8] {
        let reply = try await read([
            [
                "GETRANGE", RedisArgument(keys.outcomes(id)), RedisArgument(range.lowerBound),
                RedisArgument(range.upperBound - 1),
            ]
        ])
        var bytes = try reply[0].get().bytes ?? []
        bytes += Array(repeating: 0, count: max(0, range.count - bytes.count))
        return bytes
    }

    /// Details kept about some URL indices.
    package func details(of id: String, indices: [Int]) async throws(RedisError) -> [Int: FailureDetail] {
        guard !indices.isEmpty else { return [:] }
        let values =
            try await read([
                ["HMGET", RedisArgument(keys.skipped(id))] + indices.map { RedisArgument($0) }
            ])[0].get().array ?? []
        var result: [Int: FailureDetail] = [:]
        for (index, value) in zip(indices, values) {
            if let detail = value.string.flatMap(FailureDetail.init(encoded:)) { result[index] = detail }
        }
        return result
    }

    /// The newest batch of a list with this hash, and the newest that is still running; retries of a part of it do not count,
    /// nor those that were submitted open, of which it is one list.
    package func batches(ofList hash: String) async throws(RedisError) -> (newest: BatchStatus?, running: BatchStatus?)
    {
        let same = try await statuses(of: try await batches()).filter {
            $0.listHash == hash && $0.retryOf == nil && !$0.hasLists
        }
        return (same.last, same.last { $0.state == .running })
    }

    /// The newest running batch that was submitted open and has a list with this hash.
    package func openBatch(withList hash: String) async throws(RedisError) -> BatchStatus? {
        for status in try await statuses(of: try await batches()).reversed()
        where status.hasLists && status.state == .running {
            if try await lists(of: status.id).contains(where: { $0.hash == hash }) { return status }
        }
        return nil
    }

    /// Batches that are neither done nor cancelled.
    package func runningBatches() async throws(RedisError) -> [String] {
        (try await read([["SMEMBERS", RedisArgument(keys.running)]])[0].get().array ?? []).compactMap(\.string).sorted()
    }

    /// What each registered worker last said of itself; `id` is its name.
    package func workerFacts() async throws(RedisError) -> [[String: String]] {
        let names = try await workers()
        guard !names.isEmpty else { return [] }
        let replies = try await read(names.map { ["HGETALL", RedisArgument(keys.worker($0))] })
        var result: [[String: String]] = []
        for (name, reply) in zip(names, replies) {
            var facts = (try reply.get().fields ?? [:]).compactMapValues(\.string)
            facts["id"] = name
            result.append(facts)
        }
        return result
    }
}

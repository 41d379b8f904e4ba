package import Redis
package import WebImage

extension PrefetchQueue {
    /// Ids of all batches Redis still has, oldest first.
    package func batches() async throws(RedisError) -> [String] { try await present(try await batchNames()) }

    /// Ids of the batches in their list, oldest first: those of which Redis still has something, and those that have expired.
    private func batchNames() async throws(RedisError) -> [String] {
        (try await read([["ZRANGE", RedisArgument(keys.batches), "0", "-1"]])[0].get().array ?? []).compactMap(\.string)
    }

    /// Those of them that Redis still has.
    private func present(_ ids: [String]) async throws(RedisError) -> [String] {
        guard !ids.isEmpty else { return [] }
        let exist = try await read(ids.map { ["EXISTS", RedisArgument(keys.batch($0))] }).map { $0.int == 1 }
        // Batches leave Redis by their expiry; what is left of them in the list goes here, or with a later look where Redis takes no
        // writes now.
        let gone = zip(ids, exist).filter { !$0.1 }.map { RedisArgument($0.0) }
        if !gone.isEmpty { _ = try? await connection.pipeline([["ZREM", RedisArgument(keys.batches)] + gone]) }
        return zip(ids, exist).filter(\.1).map(\.0)
    }

    /// The newest batch that Redis still has.
    private func newestBatch(of listed: [String]) async throws(RedisError) -> String? {
        for end in stride(from: listed.count, to: 0, by: -64) {
            if let newest = try await present(Array(listed[max(0, end - 64)..<end])).last { return newest }
        }
        return nil
    }

    /// The batch a person means: an id, a unique beginning of one, or nothing for the newest.
    /// - Throws: `notFound` where there is none, or several begin so.
    package func resolve(_ name: String?) async throws(PrefetchError) -> String {
        // Of ten thousand batches only those that may be meant are asked for.
        let matches: [String]
        do throws(RedisError) {
            let listed = try await batchNames()
            if let name, !name.isEmpty {
                matches = try await present(listed.contains(name) ? [name] : listed.filter { $0.hasPrefix(name) })
            } else {
                matches = try await newestBatch(of: listed).map { [$0] } ?? []
            }
        } catch {
            throw PrefetchError(error)
        }
        if matches.count == 1 { return matches[0] }
        guard let name, !name.isEmpty else {
            let others = await otherQueues(with: "").prefix(3).map { "'\($0)'" }.joined(separator: ", ")
            throw PrefetchError(
                .notFound, "there is no batch yet" + (others.isEmpty ? "" : " in queue '\(queueName)'"),
                hint: others.isEmpty
                    ? "make one: prefetch-coord run urls.txt, or submit urls.txt"
                    : "queue \(others) has some: add --queue NAME")
        }
        if matches.isEmpty {
            let ids: [String]
            do throws(RedisError) { ids = try await batches() } catch { throw PrefetchError(error) }
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
            guard await endedDue() else { break }
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
        try await bytes(keys.outcomes(id), range)
    }

    /// A range of a string of one byte per URL; zeros behind its end.
    private func bytes(_ key: String, _ range: Range<Int>) async throws(RedisError) -> [UInt8] {
        let reply = try await read([
            [
                "GETRANGE", RedisArgument(key), RedisArgument(range.lowerBound),
                RedisArgument(range.upperBound - 1),
            ]
        ])
        var bytes = try reply[0].get().bytes ?? []
        bytes += Array(repeating: 0, count: max(0, range.count - bytes.count))
        return bytes
    }

    /// The caches that have images of a batch.
    package func caches(of id: String) async throws(RedisError) -> BatchCaches {
        let fields = try await read([["HGETALL", RedisArgument(keys.caches(id))]])[0].get().fields ?? [:]
        return BatchCaches(fields: fields.compactMapValues(\.string))
    }

    /// The numbers of the caches that the images of a range of URL indices are in; of a URL without an image it means nothing.
    package func places(of id: String, range: Range<Int>) async throws(RedisError) -> [UInt8] {
        try await bytes(keys.places(id), range)
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

    /// What each registered worker last said of itself, by name.
    package func workerReports() async throws(RedisError) -> [(name: String, report: WorkerReport)] {
        let names = try await workers()
        guard !names.isEmpty else { return [] }
        let replies = try await read(names.map { ["HGETALL", RedisArgument(keys.worker($0))] })
        var result: [(name: String, report: WorkerReport)] = []
        for (name, reply) in zip(names, replies) {
            let fields = (try reply.get().fields ?? [:]).compactMapValues(\.string)
            result.append((name, WorkerReport(fields: fields)))
        }
        return result
    }
}

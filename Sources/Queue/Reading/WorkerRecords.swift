package import Redis

/// The workers of a queue, present and gone.
package struct WorkerRecords: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    /// The registered workers by name, then those that left or were lost within a day, newest first. Two round trips.
    package func all() async throws(RedisError) -> [WorkerRecord] {
        let replies = try await redis.read(
            redis.clockCommands + [
                ["ZRANGE", RedisArgument(redis.keys.workers), "0", "-1", "WITHSCORES"],
                ["ZREVRANGE", RedisArgument(redis.keys.gone), "0", "-1"],
            ])
        let at = try ScriptRunner.time(replies)
        let leases = (try replies[2].get().fields ?? [:]).compactMapValues(\.int)
        // The list of gone workers is informational: a wrong type is ignored.
        let gone = (replies[3].array ?? []).compactMap(\.string).filter { leases[$0] == nil }
        let names = leases.keys.sorted() + gone
        guard !names.isEmpty else { return [] }
        let records = try await redis.read(names.map { ["HGETALL", RedisArgument(redis.keys.worker($0))] })
        return zip(names, records).compactMap { name, reply in
            let fields = reply.fields ?? [:]
            // Its record expired since its name was read.
            if fields.isEmpty, leases[name] == nil { return nil }
            return WorkerRecord(id: name, fields: fields, leaseEnd: leases[name], at: at)
        }
    }

    /// Names of workers that were lost after a time, newest first.
    package func lost(since time: Int) async throws(RedisError) -> [String] {
        let replies = try await redis.read([
            ["ZREVRANGEBYSCORE", RedisArgument(redis.keys.gone), "+inf", RedisArgument("(\(time)")]
        ])
        let names = (replies[0].array ?? []).compactMap(\.string)
        let ends = try await ends(ofWorkers: names)
        return names.filter { ends[$0]?.state == .lost }
    }

    /// Of unregistered workers: `left` or `lost`, when, and how many of their jobs were reclaimed; nil if unknown by now.
    package func ends(
        ofWorkers names: [String]
    ) async throws(RedisError) -> [String: (
        state: WorkerRecord.State, ended: Int, returned: Int
    )] {
        guard !names.isEmpty else { return [:] }
        let replies = try await redis.read(
            names.map { ["HMGET", RedisArgument(redis.keys.worker($0)), "state", "ended", "returned"] })
        var ends: [String: (state: WorkerRecord.State, ended: Int, returned: Int)] = [:]
        for (name, reply) in zip(names, replies) {
            guard let values = reply.array, values.count == 3, let state = values[0].string else { continue }
            ends[name] = (state == "left" ? .left : .lost, values[1].count ?? 0, values[2].count ?? 0)
        }
        return ends
    }

    /// The registered worker of a name, or of a unique prefix of one.
    /// - Throws: `notFound` if there is none, or the prefix is ambiguous, with the candidates.
    package func resolve(_ name: String) async throws(PrefetchError) -> String {
        let names: [String]
        let past: String?
        do throws(RedisError) {
            names = try await QueueWorkers(redis).names().sorted()
            past = try await redis.read([["HGET", RedisArgument(redis.keys.worker(name)), "state"]])[0].get().string
        } catch {
            throw PrefetchError(error)
        }
        if names.contains(name) { return name }
        let matches = names.filter { $0.hasPrefix(name) }
        if matches.count == 1 { return matches[0] }
        let shown = (matches.isEmpty ? names : matches).prefix(10)
        var hint = shown.joined(separator: ", ")
        let more = max(matches.count, matches.isEmpty ? names.count : 0) - shown.count
        if more > 0 { hint += " and \(more) more: prefetch-coord workers" }
        if !matches.isEmpty {
            throw PrefetchError(
                .notFound, "'\(name)' is the beginning of \(matches.count) workers", hint: "give more of it: \(hint)")
        }
        let message =
            switch past.flatMap(WorkerRecord.State.init(rawValue:)) {
            case .left: "the worker '\(name)' has left"
            case .lost: "the worker '\(name)' was lost: others have its jobs"
            default: "there is no worker '\(name)'"
            }
        throw PrefetchError(
            .notFound, message + " in queue '\(QueueCatalog(redis).queueName)'",
            hint: names.isEmpty ? "no worker is there now" : "the workers that are there: \(hint)")
    }
}

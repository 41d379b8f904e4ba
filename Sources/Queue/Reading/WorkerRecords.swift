package import Redis

/// The workers a queue has and had.
package struct WorkerRecords: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    /// A Redis with more keys is not looked through for workers that are gone: SCAN would pass over all of them.
    private static let mostKeysForWorkers = 1_000_000

    /// The registered workers by name, then those that left or were lost within a day, newest first.
    ///
    /// Returns also whether the latter were looked for: not in a Redis with over a million redis.keys.
    package func all() async throws(RedisError) -> (records: [WorkerRecord], isComplete: Bool) {
        let replies = try await redis.read(
            redis.clockCommands + [["ZRANGE", RedisArgument(redis.keys.workers), "0", "-1", "WITHSCORES"], ["DBSIZE"]])
        let at = try ScriptRunner.time(replies)
        let leases = (try replies[2].get().fields ?? [:]).compactMapValues(\.int)
        let isComplete = try replies[3].get().int ?? .max <= Self.mostKeysForWorkers
        let gone = isComplete ? try await namesOfRecords().subtracting(leases.keys) : []
        let names = leases.keys.sorted() + gone.sorted()
        guard !names.isEmpty else { return ([], isComplete) }
        let counts = try await countsOfWorkers()
        var records: [WorkerRecord] = []
        for (name, reply) in zip(
            names, try await redis.read(names.map { ["HGETALL", RedisArgument(redis.keys.worker($0))] }))
        {
            let fields = try reply.get().fields ?? [:]
            // Its day has passed since it was found.
            if fields.isEmpty, leases[name] == nil { continue }
            records.append(
                WorkerRecord(
                    id: name, fields: fields, leaseEnd: leases[name], counts: counts[name] ?? PrefetchCounts(), at: at))
        }
        let present = records.prefix { $0.leaseLeft != nil }
        let past = records.dropFirst(present.count).sorted { ($0.ended, $0.id) > ($1.ended, $1.id) }
        return (present + past, isComplete)
    }

    /// Names of workers that were lost after a time, newest first; none from a Redis with over a million redis.keys.
    package func lost(since time: Int) async throws(RedisError) -> [String] {
        let replies = try await redis.read([["ZRANGE", RedisArgument(redis.keys.workers), "0", "-1"], ["DBSIZE"]])
        let registered = (try replies[0].get().array ?? []).compactMap(\.string)
        guard try replies[1].get().int ?? .max <= Self.mostKeysForWorkers else { return [] }
        return try await ends(ofWorkers: Array(try await namesOfRecords().subtracting(registered)))
            .filter { $0.value.state == .lost && $0.value.ended > time }
            .sorted { ($0.value.ended, $0.key) > ($1.value.ended, $1.key) }.map(\.key)
    }

    /// First-write counts over all batches, a round trip for a thousand of them.
    private func countsOfWorkers() async throws(RedisError) -> [String: PrefetchCounts] {
        var sums: [String: PrefetchCounts] = [:]
        let batches = try await QueueCatalog(redis).ids()
        for start in stride(from: 0, to: batches.count, by: 1000) {
            let part = batches[start..<min(start + 1000, batches.count)]
            // A key of a wrong type is its own batch's fault.
            for reply in try await redis.read(part.map { ["HGETALL", RedisArgument(redis.keys.workerCounts($0))] }) {
                for (worker, counts) in QueueResults.countsByWorker(reply.fields ?? [:]) {
                    for outcome in PrefetchOutcome.allCases {
                        sums[worker, default: PrefetchCounts()][outcome] += counts[outcome]
                    }
                    sums[worker]?.bytes += counts.bytes
                }
            }
        }
        return sums
    }

    private func namesOfRecords() async throws(RedisError) -> Set<String> {
        Set(try await KeySpace(redis).names(startingWith: "w:").map { String($0.dropFirst("w:".count)) })
    }

    /// What became of workers that are not registered: `left` or `lost`, when, and how many of their jobs others got; nil where that is
    /// known no more.
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

    /// The registered worker a person means: its name, or a unique beginning of it.
    /// - Throws: `notFound` where there is none, or several begin so, with those that are there.
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

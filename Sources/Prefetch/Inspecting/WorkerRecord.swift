package import Redis
internal import WebImage

/// What Redis has about one worker, present or gone.
package struct WorkerRecord: Sendable, Equatable {
    /// What became of it.
    package enum State: String, Sendable {
        /// Registered, and its lease runs.
        case running
        /// Registered, but its lease has run out: alive again with its next sign of life, or reaped.
        case overdue
        /// Left in order.
        case left
        /// Reaped: others have its jobs.
        case lost
    }

    /// Its name, `host:pid` unless it had to take another.
    package var id: String
    package var state: State
    /// What it said of itself last; of one that is gone only who it was and what it settled.
    package var report: WorkerReport
    /// What it was first to settle: as it said last, or as the batches have it where that is more.
    package var finished: Int, skipped: Int, bytes: Int
    /// When it went, in milliseconds since 1970; 0 = it is there.
    package var ended: Int
    /// Milliseconds until others may take its jobs, negative where they may; nil where it is gone.
    package var leaseLeft: Int?

    /// Milliseconds since its last heartbeat; nil where it is gone, or never said how long its lease is.
    package var silence: Int? { leaseLeft.flatMap { report.silence(leaseLeft: $0) } }

    /// * `leaseEnd`: the end of its lease, nil where it is not registered.
    /// * `counts`: what the batches that Redis still has say of it.
    init(id: String, fields: [String: RedisValue], leaseEnd: Int?, counts: PrefetchCounts, at: Int) {
        let texts = fields.compactMapValues(\.string)
        let said = WorkerReport(fields: texts)
        self.id = id
        if let leaseEnd {
            state = leaseEnd > at ? .running : .overdue
            report = said
        } else {
            // One that says it runs and is not registered has lost its registration with Redis' tail.
            state = texts["state"] == State.left.rawValue ? .left : .lost
            report = WorkerReport()
            (report.host, report.pid, report.version, report.since) = (said.host, said.pid, said.version, said.since)
            report.maxConcurrentDownloads = said.maxConcurrentDownloads
        }
        // It speaks once a second, and not at all in its last one; batches that have left Redis are in its own word only.
        finished = max(said.finished, counts.finished)
        skipped = max(said.skipped, counts.skipped)
        bytes = max(said.bytes, counts.bytes)
        ended = leaseEnd == nil ? fields["ended"]?.count ?? 0 : 0
        leaseLeft = leaseEnd.map { $0 - at }
    }
}

extension WorkerRecord {
    /// The caches of workers that are there, by id, with their names: more than one where machines have their own.
    package static func caches(of records: [WorkerRecord]) -> [(id: String, workers: [String])] {
        Dictionary(grouping: records.filter { !$0.report.cache.isEmpty }, by: \.report.cache)
            .map { (id: $0.key, workers: $0.value.map(\.id).sorted()) }
            .sorted { ($1.workers.count, $0.id) < ($0.workers.count, $1.id) }
    }
}

extension PrefetchQueue {
    /// A Redis with more keys is not looked through for workers that are gone: SCAN would pass over all of them.
    private static let mostKeysForWorkers = 1_000_000

    /// The registered workers by name, then those that left or were lost within a day, newest first.
    ///
    /// Returns also whether the latter were looked for: not in a Redis with over a million keys.
    package func workerRecords() async throws(RedisError) -> (records: [WorkerRecord], isComplete: Bool) {
        let replies = try await read(
            clockCommands + [["ZRANGE", RedisArgument(keys.workers), "0", "-1", "WITHSCORES"], ["DBSIZE"]])
        let at = try Self.time(replies)
        let leases = (try replies[2].get().fields ?? [:]).compactMapValues(\.int)
        let isComplete = try replies[3].get().int ?? .max <= Self.mostKeysForWorkers
        let gone = isComplete ? try await namesOfRecords().subtracting(leases.keys) : []
        let names = leases.keys.sorted() + gone.sorted()
        guard !names.isEmpty else { return ([], isComplete) }
        let counts = try await countsOfWorkers()
        var records: [WorkerRecord] = []
        for (name, reply) in zip(names, try await read(names.map { ["HGETALL", RedisArgument(keys.worker($0))] })) {
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

    /// Names of workers that were lost after a time, newest first; none from a Redis with over a million keys.
    package func lostWorkers(since time: Int) async throws(RedisError) -> [String] {
        let replies = try await read([["ZRANGE", RedisArgument(keys.workers), "0", "-1"], ["DBSIZE"]])
        let registered = (try replies[0].get().array ?? []).compactMap(\.string)
        guard try replies[1].get().int ?? .max <= Self.mostKeysForWorkers else { return [] }
        return try await ends(ofWorkers: Array(try await namesOfRecords().subtracting(registered)))
            .filter { $0.value.state == .lost && $0.value.ended > time }
            .sorted { ($0.value.ended, $0.key) > ($1.value.ended, $1.key) }.map(\.key)
    }

    /// First-write counts over all batches, a round trip for a thousand of them.
    private func countsOfWorkers() async throws(RedisError) -> [String: PrefetchCounts] {
        var sums: [String: PrefetchCounts] = [:]
        let batches = try await batches()
        for start in stride(from: 0, to: batches.count, by: 1000) {
            let part = batches[start..<min(start + 1000, batches.count)]
            // A key of a wrong type is its own batch's fault.
            for reply in try await read(part.map { ["HGETALL", RedisArgument(keys.workerCounts($0))] }) {
                for (worker, counts) in Self.countsByWorker(reply.fields ?? [:]) {
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
        Set(try await names(startingWith: "w:").map { String($0.dropFirst("w:".count)) })
    }
}

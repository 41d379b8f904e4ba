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
    /// As it said them itself; empty and 0 where it said nothing.
    package var host: String, pid: Int, version: String
    /// Transfers under way; 0 where it is gone.
    package var inFlight: Int
    /// Transfers it may have under way, as it said itself; 0 where it did not.
    package var maxConcurrentDownloads: Int
    /// What it was told to have instead of what it was started with; nil: nothing, or what all were told.
    package var wantedConcurrency: Int?
    /// Whether it is there and claims nothing, because it was told so.
    package var isPaused: Bool
    /// URLs whose image is being checked and stored, or waits for that.
    package var checking: Int
    /// Transfers that wait for their host's turn.
    package var waitingForHost: Int
    /// What it was first to settle: as it said last, or as the batches have it where that is more.
    package var finished: Int, skipped: Int, bytes: Int
    /// Milliseconds since 1970: when it came, and when it went (0 = it is there).
    package var since: Int, ended: Int
    /// Milliseconds since its last sign of life; nil where it is gone, or never said how long its lease is.
    package var silence: Int?
    /// Milliseconds until others may take its jobs, negative where they may; nil where it is gone.
    package var leaseLeft: Int?
    /// What is broken where it runs; empty where nothing is.
    package var trouble: String
    /// What holds it, and since when; nil where nothing does.
    package var held: WorkerHold?
    /// What it has to say of single batches or keys within half a minute; empty where nothing.
    package var complaint: String
    /// The id of its cache (``DiskCache/id``); empty where it is gone or did not say.
    package var cache: String

    /// * `leaseEnd`: the end of its lease, nil where it is not registered.
    /// * `counts`: what the batches that Redis still has say of it.
    init(id: String, fields: [String: RedisValue], leaseEnd: Int?, counts: PrefetchCounts, at: Int) {
        func number(_ name: String) -> Int { fields[name]?.count ?? 0 }
        func text(_ name: String) -> String { fields[name]?.string ?? "" }
        self.id = id
        if let leaseEnd {
            state = leaseEnd > at ? .running : .overdue
        } else {
            // One that says it runs and is not registered has lost its registration with Redis' tail.
            state = text("state") == State.left.rawValue ? .left : .lost
        }
        (host, pid, version) = (text("host"), number("pid"), text("version"))
        inFlight = leaseEnd == nil ? 0 : number("in_flight")
        checking = leaseEnd == nil ? 0 : number("checking")
        maxConcurrentDownloads = number("max_concurrent_downloads")
        wantedConcurrency = leaseEnd == nil ? nil : fields["wanted"]?.int
        isPaused = leaseEnd != nil && text("paused") == "1"
        waitingForHost = leaseEnd == nil ? 0 : number("waiting_for_host")
        // It speaks once a second, and not at all in its last one; batches that have left Redis are in its own word only.
        finished = max(number("finished"), counts.finished)
        skipped = max(number("skipped"), counts.skipped)
        bytes = max(number("bytes"), counts.bytes)
        (since, ended) = (number("since"), leaseEnd == nil ? number("ended") : 0)
        leaseLeft = leaseEnd.map { $0 - at }
        silence = leaseEnd.flatMap { end in fields["lease"]?.int.map { max(0, at - (end - $0)) } }
        trouble = leaseEnd == nil ? "" : text("trouble")
        held = leaseEnd == nil ? nil : WorkerHold(fields.compactMapValues(\.string))
        complaint = leaseEnd == nil ? "" : text("complaint")
        cache = leaseEnd == nil ? "" : text("cache")
    }
}

extension WorkerRecord {
    /// The caches of workers that are there, by id, with their names: more than one where they do not share a directory, so that none of them
    /// has all images of a batch.
    package static func caches(of records: [WorkerRecord]) -> [(id: String, workers: [String])] {
        Dictionary(grouping: records.filter { !$0.cache.isEmpty }, by: \.cache)
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

    /// First-write counts over all batches.
    private func countsOfWorkers() async throws(RedisError) -> [String: PrefetchCounts] {
        var sums: [String: PrefetchCounts] = [:]
        for batch in try await batches() {
            for (worker, counts) in try await workerCounts(of: batch) {
                for outcome in PrefetchOutcome.allCases {
                    sums[worker, default: PrefetchCounts()][outcome] += counts[outcome]
                }
                sums[worker]?.bytes += counts.bytes
            }
        }
        return sums
    }

    private func namesOfRecords() async throws(RedisError) -> Set<String> {
        Set(try await names(startingWith: "w:").map { String($0.dropFirst("w:".count)) })
    }
}

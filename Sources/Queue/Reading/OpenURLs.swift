package import Redis

/// The oldest open URLs of a batch and why they wait.
package struct OpenURLs: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    /// A claimed job, with the worker's notes on it.
    private struct ClaimedJob {
        var name: String
        var base: Int
        var count: Int
        var worker: String
        var notes: [OpenURLNote] = []
        /// When the notes were written; ms.
        var beat: Int
        var leaseEnd: Int
        /// Last heartbeat of the worker; ms.
        var lastSeen: Int
        /// The worker's local fault; empty without one.
        var trouble: String

        /// When its oldest URL was claimed; jobs without a note come last.
        var order: (Int, Int) { (notes.map { beat - $0.claimed }.min() ?? .max, base) }
    }

    /// Jobs without a note whose payload is read, and jobs of the list that are read.
    private static let maxJobs = 5, maxQueued = 2

    /// The open URLs of a running batch that were claimed first, then those waiting in Redis, then those not pushed yet.
    package func oldest(of status: BatchStatus, most: Int = 5) async throws(RedisError) -> [OpenURL] {
        guard status.state == .running else { return [] }
        let (jobs, at) = try await claimedJobs(of: status.identity)
        let spoken = jobs.filter { !$0.notes.isEmpty }.sorted { $0.order < $1.order }
        var found = try await open(spoken.prefix(most), of: status.id, at: at)
        if found.count < most {
            let silent = jobs.filter { $0.notes.isEmpty }.sorted { $0.order < $1.order }
            found += try await open(silent.prefix(Self.maxJobs), of: status.id, at: at)
        }
        if found.count < most { found += try await queued(status, most: most - found.count) }
        if found.count < most, !status.isSealed, status.pushed < status.total {
            var rest = OpenURL(index: status.pushed, state: .notPushed)
            rest.detail = String(status.total - status.pushed)
            rest.since = status.fed
            found.append(rest)
        }
        return Array(found.prefix(most))
    }

    /// The claimed jobs of the batch, and the time in Redis.
    private func claimedJobs(of batch: BatchIdentity) async throws(RedisError) -> (jobs: [ClaimedJob], at: Int) {
        let first = try await redis.read(
            redis.clockCommands + [["ZRANGE", RedisArgument(redis.keys.workers), "0", "-1", "WITHSCORES"]])
        let at = try ScriptRunner.time(first)
        let workers = (try first[2].get().fields ?? [:]).compactMapValues(\.int).sorted { $0.key < $1.key }
        guard !workers.isEmpty else { return ([], at) }
        let replies = try await redis.read(
            workers.flatMap { worker, _ in
                [
                    ["HMGET", RedisArgument(redis.keys.worker(worker)), "oldest", "beat", "lease", "trouble"],
                    ["HKEYS", RedisArgument(redis.keys.owned(by: worker))],
                ]
            })
        var jobs: [ClaimedJob] = []
        for (number, (worker, leaseEnd)) in workers.enumerated() {
            let said = try replies[2 * number].get().array ?? []
            let notes = (said.first?.string ?? "").split(atByte: "\n").compactMap(OpenURLNote.init)
            let beat = said.count > 1 ? said[1].count ?? at : at
            let lease = said.count > 2 ? said[2].count ?? 0 : 0
            for name in (try replies[2 * number + 1].get().array ?? []).compactMap(\.string) {
                guard let (base, count) = batch.range(ofClaim: name) else { continue }
                var claim = ClaimedJob(
                    name: name, base: base, count: count, worker: worker, beat: beat, leaseEnd: leaseEnd,
                    lastSeen: leaseEnd - lease, trouble: said.last?.string ?? "")
                claim.notes = notes.filter { $0.batch == batch.id && $0.index >= base && $0.index < base + count }
                jobs.append(claim)
            }
        }
        return (jobs, at)
    }

    /// The open URLs of these jobs; if the worker has noted some of a job, only those.
    private func open(
        _ jobs: ArraySlice<ClaimedJob>, of batch: String, at: Int
    ) async throws(RedisError) -> [OpenURL] {
        guard !jobs.isEmpty else { return [] }
        let replies = try await redis.read(
            jobs.flatMap { job in
                [
                    ["HGET", RedisArgument(redis.keys.owned(by: job.worker)), RedisArgument(job.name)],
                    [
                        "GETRANGE", RedisArgument(redis.keys.outcomes(batch)), RedisArgument(job.base),
                        RedisArgument(job.base + job.count - 1),
                    ],
                ]
            })
        var found: [OpenURL] = []
        for (number, claim) in jobs.enumerated() {
            guard let job = try replies[2 * number].get().bytes.flatMap(PrefetchJob.init) else { continue }
            let outcomes = try replies[2 * number + 1].get().bytes ?? []
            for (position, entry) in job.entries.enumerated()
            where position >= outcomes.count || outcomes[position] == 0 {
                let note = claim.notes.first { $0.index == job.base + position }
                if note == nil && !claim.notes.isEmpty { continue }
                found.append(Self.claimed(job.base + position, entry, claim, note, at: at))
            }
        }
        return found
    }

    private static func claimed(
        _ index: Int, _ entry: PrefetchJob.Entry, _ claim: ClaimedJob, _ note: OpenURLNote?, at: Int
    ) -> OpenURL {
        var url = OpenURL(index: index, line: entry.line, url: entry.url, state: note?.state ?? .claimed)
        url.worker = claim.worker
        url.host = try? RequestURL(entry.url).host
        if let note {
            url.tries = note.tries
            url.detail = note.detail
            url.since = claim.beat - note.elapsed
            url.until = note.remaining.map { claim.beat + $0 }
            if !note.host.isEmpty { url.host = note.host }
        }
        // It has said why; what its URLs did before matters no more.
        if !claim.trouble.isEmpty, at <= claim.leaseEnd {
            (url.state, url.detail, url.until) = (.paused, claim.trouble, nil)
            return url
        }
        // Heartbeats come every second, or every third of the lease from a worker that has nothing.
        if at - claim.lastSeen > max(3_000, (claim.leaseEnd - claim.lastSeen) / 2) {
            url.state = .workerSilent
            (url.since, url.until) = (claim.lastSeen, claim.leaseEnd)
        }
        return url
    }

    /// Jobs waiting in Redis, next ones first.
    private func queued(_ status: BatchStatus, most: Int) async throws(RedisError) -> [OpenURL] {
        let about =
            try await redis.read([["HMGET", RedisArgument(redis.keys.batch(status.id)), "order", "paused"]])[0].get()
            .array ?? []
        let isLIFO = about.first?.string == "lifo"
        let range = isLIFO ? (0, Self.maxQueued - 1) : (-Self.maxQueued, -1)
        var payloads =
            try await redis.read([
                ["LRANGE", RedisArgument(redis.keys.jobs(status.id)), RedisArgument(range.0), RedisArgument(range.1)]
            ])[0].get().array ?? []
        if !isLIFO { payloads.reverse() }
        var found: [OpenURL] = []
        for job in payloads.compactMap(\.bytes).compactMap(PrefetchJob.init) {
            let outcomes = try await QueueResults(redis).outcomes(
                of: status.id, range: job.base..<(job.base + job.entries.count))
            for (position, entry) in job.entries.enumerated() where outcomes[position] == 0 && found.count < most {
                var url = OpenURL(index: job.base + position, line: entry.line, url: entry.url, state: .queued)
                url.host = try? RequestURL(entry.url).host
                url.detail = about.last?.string == "1" ? "the batch is paused" : ""
                found.append(url)
            }
        }
        return found
    }
}

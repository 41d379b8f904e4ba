internal import Redis

/// A queue at one moment in Redis: the only source of `status`, `workers`, `health`, `watch`, `dash` and `metrics`.
package struct QueueSnapshot: Sendable {
    package struct RunningBatch: Sendable, Equatable {
        package var id: String
        package var waitingJobs = 0
        /// Why it cannot run; nil if it can.
        package var broken: String?
        /// Whether its feeder reported within the last 5 s that Redis refused its jobs.
        package var hasRefusedJobs = false
    }

    /// Milliseconds since 1970 by the queue's clock.
    package var at = 0
    /// Newest first.
    package var batches: [BatchStatus] = []
    package var running: [RunningBatch] = []
    package var workers: [String: WorkerRecord] = [:]
    package var claimedJobs = 0
    package var settings = QueueControl.QueueSettings()
    package var hosts: [HostProblem] = []
    /// Number of failed URLs on the list, its limit, and how many were removed because of the limit.
    package var failedURLs = 0
    package var failedURLLimit = Blacklist.Limit()
    package var dead = 0
    /// Workers lost since the queue was created, the jobs reclaimed from them, and how many URLs of those were open.
    package var lostWorkers = 0, reclaimedJobs = 0, reclaimedURLs = 0
    /// Bytes that Redis uses, and may use (0 = no limit).
    package var usedMemory = 0, maxMemory = 0

    package init() {}

    package var waitingJobs: Int { running.reduce(0) { $0 + $1.waitingJobs } }

    /// Whether Redis takes no new jobs until workers make room. It may refuse jobs with up to one push of memory left.
    package var isFull: Bool {
        maxMemory > 0 && (usedMemory >= maxMemory || running.contains(where: \.hasRefusedJobs))
    }
}

extension QueueSnapshot {
    init(_ reply: [RedisValue], _ facts: RedisServerFacts) {
        (usedMemory, maxMemory) = (facts.usedMemory, facts.maxmemory)
        guard reply.count >= 8, let at = reply[0].int else { return }
        self.at = at
        let numbers = reply[1].array ?? []
        func number(_ index: Int) -> Int? { index < numbers.count ? numbers[index].count : nil }
        failedURLs = number(0) ?? 0
        if let most = number(1) { failedURLLimit.most = most }
        failedURLLimit.removed = number(2) ?? 0
        dead = number(3) ?? 0
        settings = QueueControl.QueueSettings(
            isPaused: number(4) == 1,
            concurrency: numbers.indices.contains(5) ? QueueControl.concurrency(numbers[5].string) : nil)
        (lostWorkers, reclaimedJobs, reclaimedURLs) = (number(6) ?? 0, number(7) ?? 0, number(8) ?? 0)
        hosts = QueueHosts.troubled(reply[2].pairs ?? [], at: at)
        workers = WorkerRecord.present(reply[3], said: reply[4], at: at)
        claimedJobs = (reply[5].array ?? []).reduce(0) { $0 + ($1.count ?? 0) }
        for (id, state) in zip(reply[6].array ?? [], reply[7].array ?? []) {
            guard let id = id.string else { continue }
            var batch = RunningBatch(id: id)
            let state = state.array ?? []
            batch.waitingJobs = state.first?.count ?? 0
            batch.broken = state.count > 1 ? state[1].string : nil
            if state.count == 4 {
                let (full, fed) = (state[2].count ?? 0, state[3].count ?? 0)
                batch.hasRefusedJobs = full > 0 && full >= fed && at - full <= 5_000
            }
            running.append(batch)
        }
        for position in stride(from: 8, to: reply.count - 1, by: 2) {
            guard let id = reply[position].string,
                let status = BatchStatus(
                    id: id, fields: reply[position + 1].fields ?? [:], at: at, isQueuePaused: settings.isPaused)
            else { continue }
            batches.append(status)
        }
    }
}

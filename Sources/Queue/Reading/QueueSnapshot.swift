internal import Redis

/// A queue as Redis had it at one moment: what `status`, `workers`, `health`, `watch`, `dash` and `metrics` show of it is made of this alone.
package struct QueueSnapshot: Sendable {
    /// A batch that is neither done nor cancelled.
    package struct RunningBatch: Sendable, Equatable {
        package var id: String
        /// Jobs on its list.
        package var waitingJobs = 0
        /// Why it cannot be worked on; nil where it can.
        package var broken: String?
        /// Whether its feeder said within 5 s that Redis refused its jobs.
        package var hasRefusedJobs = false
    }

    /// Milliseconds since 1970 by the queue's clock.
    package var at = 0
    /// The newest batches, newest first.
    package var batches: [BatchStatus] = []
    package var running: [RunningBatch] = []
    /// The registered workers, by name.
    package var workers: [String: BatchLook.Worker] = [:]
    /// Jobs that workers have.
    package var claimedJobs = 0
    /// What was said to all workers.
    package var orders = QueueControl.QueueOrders()
    /// Hosts that are not as they should be, of all batches.
    package var hosts: [TroubledHost] = []
    /// URLs on the list of failed ones, how many there may be, and how many went because there were more.
    package var failedURLs = 0
    package var failedURLLimit = FailedURLList.Limit()
    /// Elements of job lists that were no jobs.
    package var dead = 0
    /// Workers that were lost since the queue was made, the jobs that others got of theirs, and the URLs of those that were open.
    package var lostWorkers = 0, reclaimedJobs = 0, reclaimedURLs = 0
    /// Bytes that Redis uses, and may use (0 = no limit).
    package var usedMemory = 0, maxMemory = 0

    package init() {}

    /// Jobs on the lists of running batches.
    package var waitingJobs: Int { running.reduce(0) { $0 + $1.waitingJobs } }

    /// Whether Redis takes no new jobs: workers go on, and what they take makes room. The memory in use may be below maxmemory by less than one
    /// push where jobs were refused.
    package var isFull: Bool {
        maxMemory > 0 && (usedMemory >= maxMemory || running.contains(where: \.hasRefusedJobs))
    }
}

extension QueueSnapshot {
    /// Reads what BROWSE says.
    init(_ reply: [RedisValue], _ facts: RedisServerFacts) {
        (usedMemory, maxMemory) = (facts.usedMemory, facts.maxmemory)
        guard reply.count >= 8, let at = reply[0].int else { return }
        self.at = at
        let numbers = reply[1].array ?? []
        func number(_ index: Int) -> Int? { index < numbers.count ? numbers[index].count : nil }
        failedURLs = number(0) ?? 0
        if let most = number(1) { (failedURLLimit.most, failedURLLimit.isSet) = (most, true) }
        failedURLLimit.removed = number(2) ?? 0
        dead = number(3) ?? 0
        orders = QueueControl.QueueOrders(
            isPaused: number(4) == 1, concurrency: numbers.indices.contains(5) ? numbers[5].int : nil)
        (lostWorkers, reclaimedJobs, reclaimedURLs) = (number(6) ?? 0, number(7) ?? 0, number(8) ?? 0)
        hosts = QueueHosts.troubled(reply[2].fields ?? [:], at: at)
        workers = BatchLook.Worker.read(reply[3], said: reply[4], at: at)
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
                    id: id, fields: reply[position + 1].fields ?? [:], at: at, isQueuePaused: orders.isPaused)
            else { continue }
            batches.append(status)
        }
    }
}

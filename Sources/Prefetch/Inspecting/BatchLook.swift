package import WebImage
internal import Redis

/// A batch, its workers, its hosts and its causes as Redis had them at one moment: whatever is added up of it agrees.
package struct BatchLook: Sendable {
    /// What one host of the batch came to.
    package struct Host: Sendable, Equatable {
        package var finished: Int, skipped: Int, bytes: Int

        package init(finished: Int, skipped: Int, bytes: Int) {
            (self.finished, self.skipped, self.bytes) = (finished, skipped, bytes)
        }
    }

    /// A registered worker as it said itself last.
    package struct Worker: Sendable, Equatable {
        package var report: WorkerReport
        /// Milliseconds until others may take its jobs, negative where they may.
        package var leaseLeft: Int

        package init(_ report: WorkerReport, leaseLeft: Int) {
            (self.report, self.leaseLeft) = (report, leaseLeft)
        }

        package var state: WorkerReport.State { report.state(leaseLeft: leaseLeft) }
        /// Milliseconds since its last heartbeat.
        package var silence: Int? { report.silence(leaseLeft: leaseLeft) }
    }

    /// Milliseconds since 1970 by the clock of Redis.
    package var at: Int
    package var status: BatchStatus
    /// Answers that ended as `httpError`, by their status; may be fewer than there were.
    package var httpStatuses: [Int: Int]
    /// First-write counts in this batch by worker, also of those that are gone.
    package var counts: [String: PrefetchCounts]
    /// The hosts that are counted, at most 256, by what was asked of them; what is missing to the batch's counts are other hosts, those of
    /// the last second, and what needed no request.
    package var hosts: [String: Host]
    /// Jobs that wait in Redis.
    package var waitingJobs: Int
    /// Whoever is registered, by name.
    package var workers: [String: Worker]

    package init(
        at: Int, status: BatchStatus, httpStatuses: [Int: Int] = [:], counts: [String: PrefetchCounts] = [:],
        hosts: [String: Host] = [:], waitingJobs: Int = 0, workers: [String: Worker] = [:]
    ) {
        self.at = at
        self.status = status
        self.httpStatuses = httpStatuses
        self.counts = counts
        self.hosts = hosts
        self.waitingJobs = waitingJobs
        self.workers = workers
    }
}

/// What a dashboard shows beside its batch, read less often.
package struct QueueLook: Sendable {
    /// Milliseconds since 1970 by the clock of Redis.
    package var at: Int
    /// The newest batches, newest first.
    package var batches: [BatchStatus]
    /// Whether nothing of any batch begins.
    package var isPaused = false
    /// Hosts that are not as they should be, of all batches.
    package var hosts: [TroubledHost]
    /// URLs on the list of failed ones.
    package var failedURLs: Int
    /// Bytes that Redis uses.
    package var memory: Int

    package init(
        at: Int = 0, batches: [BatchStatus] = [], hosts: [TroubledHost] = [], failedURLs: Int = 0, memory: Int = 0
    ) {
        (self.at, self.batches, self.hosts, self.failedURLs, self.memory) = (at, batches, hosts, failedURLs, memory)
    }
}

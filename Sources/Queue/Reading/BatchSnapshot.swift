internal import Redis

/// A batch with its workers, hosts and causes of failure at one moment in Redis, so that all its sums agree.
package struct BatchSnapshot: Sendable {
    package struct Host: Sendable, Equatable {
        package var finished: Int, skipped: Int, bytes: Int

        package init(finished: Int, skipped: Int, bytes: Int) {
            (self.finished, self.skipped, self.bytes) = (finished, skipped, bytes)
        }
    }

    /// Milliseconds since 1970 by the clock of Redis.
    package var at: Int
    package var status: BatchStatus
    /// URLs that ended as `httpError`, by status; may be fewer than there were.
    package var httpStatuses: [Int: Int]
    /// First-write counts in this batch by worker, including workers that are gone.
    package var counts: [String: PrefetchCounts]
    /// Counts of up to 256 hosts. The batch's counts also include other hosts, the last second, and URLs without a request.
    package var hosts: [String: Host]
    package var waitingJobs: Int
    /// Registered ones.
    package var workers: [String: WorkerRecord]

    package init(
        at: Int, status: BatchStatus, httpStatuses: [Int: Int] = [:], counts: [String: PrefetchCounts] = [:],
        hosts: [String: Host] = [:], waitingJobs: Int = 0, workers: [String: WorkerRecord] = [:]
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

internal import Redis

/// A batch with its workers, hosts and causes of failure at one moment in Redis, so that all its sums agree.
package struct BatchSnapshot: Sendable {
    package struct Host: Sendable, Equatable {
        package var finished: Int, skipped: Int, bytes: Int

        package init(finished: Int, skipped: Int, bytes: Int) {
            (self.finished, self.skipped, self.bytes) = (finished, skipped, bytes)
        }
    }

    /// A registered worker as of its last heartbeat.
    package struct Worker: Sendable, Equatable {
        package var report: WorkerReport
        /// Milliseconds until other workers may take its jobs, negative after that.
        package var leaseLeft: Int

        package init(_ report: WorkerReport, leaseLeft: Int) {
            (self.report, self.leaseLeft) = (report, leaseLeft)
        }

        package var state: WorkerReport.State { report.state(leaseLeft: leaseLeft) }
        package var silence: Int? { report.silence(leaseLeft: leaseLeft) }
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

extension BatchSnapshot.Worker {
    /// * `said`: the record of each worker, in the order of the leases.
    static func read(_ leases: RedisValue, said: RedisValue, at: Int) -> [String: BatchSnapshot.Worker] {
        let names = leases.array ?? []
        var workers: [String: BatchSnapshot.Worker] = [:]
        for (position, about) in (said.array ?? []).enumerated() where 2 * position + 1 < names.count {
            guard let name = names[2 * position].string, let end = names[2 * position + 1].int else { continue }
            workers[name] = BatchSnapshot.Worker(
                WorkerReport(fields: (about.fields ?? [:]).compactMapValues(\.string)), leaseLeft: end - at)
        }
        return workers
    }
}

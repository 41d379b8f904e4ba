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

extension BatchLook.Worker {
    /// Workers by name, from the sorted set of leases and what each said.
    static func read(_ leases: RedisValue, said: RedisValue, at: Int) -> [String: BatchLook.Worker] {
        let names = leases.array ?? []
        var workers: [String: BatchLook.Worker] = [:]
        for (position, about) in (said.array ?? []).enumerated() where 2 * position + 1 < names.count {
            guard let name = names[2 * position].string, let end = names[2 * position + 1].int else { continue }
            workers[name] = BatchLook.Worker(
                WorkerReport(fields: (about.fields ?? [:]).compactMapValues(\.string)), leaseLeft: end - at)
        }
        return workers
    }
}

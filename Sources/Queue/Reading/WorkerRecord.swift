internal import Redis

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
    /// What it was first to settle.
    package var finished: Int, skipped: Int, bytes: Int
    /// When it went, in milliseconds since 1970; 0 = it is there.
    package var ended: Int
    /// Milliseconds until others may take its jobs, negative where they may; nil where it is gone.
    package var leaseLeft: Int?

    /// Milliseconds since its last heartbeat; nil where it is gone, or never said how long its lease is.
    package var silence: Int? { leaseLeft.flatMap { report.silence(leaseLeft: $0) } }

    /// * `leaseEnd`: the end of its lease, nil where it is not registered.
    init(id: String, fields: [String: RedisValue], leaseEnd: Int?, at: Int) {
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
        (finished, skipped, bytes) = (said.finished, said.skipped, said.bytes)
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

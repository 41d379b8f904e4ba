internal import Redis

/// The record of a worker, present or gone.
package struct WorkerRecord: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable {
        case running
        /// Registered with an expired lease: the next heartbeat renews it, or it is reaped.
        case overdue
        case left
        /// Reaped: its jobs went back to their lists.
        case lost
    }

    /// `host:pid` unless that name was taken.
    package var id: String
    package var state: State
    /// As of its last heartbeat; of a worker that is gone only its identity and what it settled.
    package var report: WorkerReport
    /// When it left or was lost, in milliseconds since 1970; 0 = it is present.
    package var ended: Int
    /// Milliseconds until other workers may take its jobs, negative after that; nil if it is gone.
    package var leaseLeft: Int?

    /// Milliseconds since its last heartbeat; nil if it is gone, or has never reported its lease.
    package var silence: Int? { leaseLeft.flatMap { report.silence(leaseLeft: $0) } }

    /// What it does; only of a present worker.
    package var condition: WorkerReport.State { report.state(leaseLeft: leaseLeft ?? 0) }

    /// A present worker, for views and their tests.
    package init(id: String, _ report: WorkerReport, leaseLeft: Int) {
        (self.id, self.report, self.leaseLeft, ended) = (id, report, leaseLeft, 0)
        state = leaseLeft > 0 ? .running : .overdue
    }

    /// * `leaseEnd`: nil if it is not registered.
    init(id: String, fields: [String: RedisValue], leaseEnd: Int?, at: Int) {
        let texts = fields.compactMapValues(\.string)
        let said = WorkerReport(fields: texts)
        self.id = id
        if let leaseEnd {
            state = leaseEnd > at ? .running : .overdue
            report = said
        } else {
            // A worker that is marked as running but not registered lost its registration when Redis lost its last writes.
            state = texts["state"] == State.left.rawValue ? .left : .lost
            report = WorkerReport()
            (report.host, report.pid, report.version, report.since) = (said.host, said.pid, said.version, said.since)
            (report.maxConcurrentDownloads, report.names) = (said.maxConcurrentDownloads, said.names)
            (report.finished, report.skipped, report.bytes) = (said.finished, said.skipped, said.bytes)
        }
        ended = leaseEnd == nil ? fields["ended"]?.count ?? 0 : 0
        leaseLeft = leaseEnd.map { $0 - at }
    }
}

extension WorkerRecord {
    /// Registered workers by name.
    /// * `said`: the record of each, in the order of the leases.
    static func present(_ leases: RedisValue, said: RedisValue, at: Int) -> [String: WorkerRecord] {
        let names = leases.array ?? []
        var workers: [String: WorkerRecord] = [:]
        for (position, about) in (said.array ?? []).enumerated() where 2 * position + 1 < names.count {
            guard let name = names[2 * position].string, let end = names[2 * position + 1].int else { continue }
            workers[name] = WorkerRecord(id: name, fields: about.fields ?? [:], leaseEnd: end, at: at)
        }
        return workers
    }

    /// The caches of present workers: id and worker names. More than one if machines have their own.
    package static func caches(of records: [WorkerRecord]) -> [(id: String, workers: [String])] {
        Dictionary(grouping: records.filter { !$0.report.cache.isEmpty }, by: \.report.cache)
            .map { (id: $0.key, workers: $0.value.map(\.id).sorted()) }
            .sorted { ($1.workers.count, $0.id) < ($0.workers.count, $1.id) }
    }

    /// What holds the decoders of present workers, and their names: most workers first.
    package static func sandboxes(of records: [WorkerRecord]) -> [(text: String, workers: [String])] {
        Dictionary(grouping: records.filter { !$0.report.sandbox.isEmpty }, by: \.report.sandbox)
            .map { (text: $0.key, workers: $0.value.map(\.id).sorted()) }
            .sorted { ($1.workers.count, $0.text) < ($0.workers.count, $1.text) }
    }

    /// What present workers refuse by their own settings (nil: nothing beyond the defaults), and their names: most workers first.
    package static func rules(of records: [WorkerRecord]) -> [(refuses: String?, workers: [String])] {
        Dictionary(grouping: records.filter { !$0.report.rules.isEmpty }, by: \.report.rules)
            .map { (refuses: $1[0].report.refuses, workers: $1.map(\.id).sorted()) }
            .sorted { ($1.workers.count, $0.workers[0]) < ($0.workers.count, $1.workers[0]) }
    }
}

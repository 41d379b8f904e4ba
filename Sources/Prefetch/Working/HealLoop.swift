internal import Redis
internal import Threading

/// Heals the queue where it keeps this worker from working: Redis rejected a call or a report within the last lease because
/// of a key's type, or nothing could be claimed for 4, 8, 16 … 64 leases.
///
/// Confined to the worker's executor.
final class HealLoop {
    /// Leases without work before the first time, and most between two times.
    private static let (firstLeases, mostLeases) = (4, 64)

    private let worker: WorkerContext
    private let claims: ClaimLoop
    private let reports: ReportLoop

    init(_ worker: WorkerContext, claims: ClaimLoop, reports: ReportLoop) {
        self.worker = worker
        self.claims = claims
        self.reports = reports
    }

    nonisolated(nonsending) func run() async {
        let lease = worker.configuration.lease
        var (idle, due) = (0, Self.firstLeases)
        while !Task.isCancelled {
            do { try await Task.sleep(for: .milliseconds(lease)) } catch { return }
            idle = claims.lacksWork ? idle + 1 : 0
            if idle == 0 { due = Self.firstLeases }
            let isWrong = worker.redis.takeWrongType()
            guard isWrong || reports.hasRefused || idle >= due else { continue }
            let scans = isWrong || idle == Self.firstLeases
            if idle >= due { due = idle + min(due, Self.mostLeases) }
            let healed = await worker.redis.persist(until: worker.shutdown.draining) { queue async throws(RedisError) in
                try await queue.healing.heal(every: lease, scans: scans)
            }
            for line in healed ?? [] { worker.warningLog.say("healed the queue: \(line)") }
        }
    }
}

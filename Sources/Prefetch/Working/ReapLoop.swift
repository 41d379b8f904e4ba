internal import Redis
internal import Threading

/// Reaps workers with expired leases if a heartbeat's reply suggests it, and every four leases. There is no leader: the script makes one
/// caller win. `run` reaps its own workers as soon as they have died (`BatchRun`).
final class ReapLoop: Sendable {
    private let worker: WorkerContext
    /// Rings when a heartbeat's reply suggests reaping.
    let bell = WakeSignal()

    init(_ worker: WorkerContext) { self.worker = worker }

    nonisolated(nonsending) func run() async {
        while !Task.isCancelled {
            await bell.wait(atMost: .milliseconds(worker.configuration.lease * 4))
            // Spreads workers that got the same reply.
            do { try await Task.sleep(for: .milliseconds(Int.random(in: 0...100))) } catch { return }
            var mayBeMore = true
            while mayBeMore {
                let result = await worker.redis.persist { queue async throws(RedisError) in
                    try await queue.workers.reap()
                }
                mayBeMore = if case .reaped? = result { true } else { false }
            }
        }
    }
}

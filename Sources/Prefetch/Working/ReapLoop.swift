internal import Redis
internal import Threading

/// Gives the jobs of workers whose leases have lapsed back, where a heartbeat was told that there may be some, and every four leases. There is
/// no leader: the script's own look makes one winner. `run` reaps a worker of its own as soon as that has died (`BatchRun`).
final class ReapLoop: Sendable {
    private let worker: WorkerContext
    /// Rings where a heartbeat was told that there may be something to reap.
    let bell = Bell()

    init(_ worker: WorkerContext) { self.worker = worker }

    nonisolated(nonsending) func run() async {
        while !Task.isCancelled {
            await bell.wait(atMost: .milliseconds(worker.configuration.lease * 4))
            // Not all that were told come together.
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

internal import Redis

/// Repairs a queue apart from its batches: wrong types, orphaned claims, sets, ready lists, bell. Idempotent; workers may go on.
package struct QueueRepair: Sendable {
    private let queue: PrefetchQueue

    package init(queue: PrefetchQueue) {
        self.queue = queue
    }

    /// Returns a sentence for each change.
    package func run() async throws(PrefetchError) -> [String] {
        do throws(RedisError) {
            var found = try await queue.keySpace.foundKeys()
            var lines = try await queue.keySpace.putAside(try await queue.keySpace.wrongKeys(found))
            if !lines.isEmpty { found = try await queue.keySpace.foundKeys() }
            let registered = Set(try await queue.workers.names())
            for worker in found.owners {
                let count = try await queue.repairSteps.reclaim(from: worker)
                let isRegistered = registered.contains(worker)
                guard count > 0 || !isRegistered else { continue }
                let whose = isRegistered ? "which does not know of them" : "which is not registered"
                lines.append("gave \(count) jobs of \(worker), \(whose), back to their lists")
            }
            for batch in found.remains { lines.append(try await removeRemains(of: batch)) }
            return lines
                + (try await queue.repairSteps.rering(isDry: false, batches: found.batches)).map { "repaired: \($0)" }
        } catch {
            throw PrefetchError(error)
        }
    }
    /// Removes the keys of a batch whose hash is gone; returns the message.
    func removeRemains(of batch: String) async throws(RedisError) -> String {
        _ = try await queue.batches.remove(batch: batch)
        return "removed what was left of \(batch), which Redis knows no more; make it again from its list: "
            + "prefetch-coord submit FILE --name \(batch)"
    }
}

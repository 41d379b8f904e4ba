internal import Redis

/// Checks a queue apart from its batches: types of keys, sets, ready lists, bell, owners of claims, and keys without a batch.
package struct QueueCheck: Sendable {
    private let queue: PrefetchQueue

    package init(queue: PrefetchQueue) {
        self.queue = queue
    }

    /// Findings without a batch. Scans all keys of this Redis once.
    package func run() async throws(PrefetchError) -> [BatchCheck.Finding] {
        func finding(_ invariant: String, _ message: String) -> BatchCheck.Finding {
            BatchCheck.Finding(batch: "", invariant: invariant, message: message)
        }
        do throws(RedisError) {
            let found = try await queue.keySpace.foundKeys()
            let wrong = try await queue.keySpace.wrongKeys(found)
            guard wrong.isEmpty else { return wrong.map { finding("Type", $0.sentence(queue.keys)) } }
            let registered = Set(try await queue.workers.names())
            return found.owners.filter { !registered.contains($0) }
                .map { finding("I4", "\($0) has claims and is not registered") }
                + found.remains.map { finding("I3", "\($0) has keys, and the one that says what it was is gone") }
                + (try await queue.healing.findings(found.batches)).map { finding("I2", $0) }
        } catch {
            throw PrefetchError(error)
        }
    }
}

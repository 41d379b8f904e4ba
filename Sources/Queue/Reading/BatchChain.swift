internal import Redis

/// A batch with the batches it retries and its retries: the newest result of each line may be in any of them.
package struct BatchChain: Sendable {
    /// Oldest first, each a retry of the one before; never empty.
    package let batches: [BatchStatus]

    /// The batch whose entries are the lines of the list; a retry if the batch it retries is gone.
    package var root: BatchStatus { batches[0] }

    package var newest: BatchStatus { batches[batches.count - 1] }

    init(_ batches: [BatchStatus]) {
        precondition(!batches.isEmpty, "a chain has at least one batch")
        self.batches = batches
    }

    /// Reads the chain that a batch belongs to.
    /// - Throws: `notFound` if Redis has no such batch; errors of Redis.
    package static func read(_ id: String, queue: PrefetchQueue) async throws(PrefetchError) -> BatchChain {
        do throws(RedisError) {
            if let status = try await queue.batches.status(of: id) {
                var batches = [status]
                while let parent = batches[0].retryOf, let found = try await queue.batches.status(of: parent),
                    found.retriedBy == batches[0].id
                {
                    batches.insert(found, at: 0)
                }
                while let child = batches[batches.count - 1].retriedBy,
                    let found = try await queue.batches.status(of: child)
                {
                    batches.append(found)
                }
                return BatchChain(batches)
            }
        } catch {
            throw PrefetchError(error)
        }
        throw PrefetchError(.notFound, "there is no batch '\(id)'", hint: "see them all: prefetch-coord status")
    }

    /// The newest outcome of each line; a line that is being retried counts as open.
    package var counts: PrefetchCounts {
        var counts = newest.counts
        for batch in batches.dropLast() {
            for outcome in PrefetchOutcome.allCases where !outcome.isSkipped {
                counts[outcome] += batch.counts[outcome]
            }
            counts.bytes += batch.counts.bytes
        }
        return counts
    }

    package var open: Int { max(0, root.total - counts.finished) }
}

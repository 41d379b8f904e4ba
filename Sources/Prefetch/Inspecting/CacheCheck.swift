package import WebImage

/// Checks that the images of a batch are in the given cache: I5. Changes nothing.
package struct CacheCheck: Sendable {
    package struct Result: Sendable {
        package var present = 0
        /// Images in caches of other machines, with the number in each.
        package var elsewhere: [BatchCache: Int] = [:]
        /// Lines that were changed since they were queued: their images are not checked.
        package var lost: [ClosedRange<Int>] = []
    }

    let queue: PrefetchQueue
    let cache: DiskCache

    package init(queue: PrefetchQueue, cache: DiskCache) { (self.queue, self.cache) = (queue, cache) }

    /// Checks each image of a batch's list. An image that was stored in another cache and is missing here is only counted.
    /// * `report`: called for each missing image.
    /// - Throws: `notFound`, `unreadableList` if the list is missing or has changed; `redisUnavailable`.
    package func run(
        _ status: BatchStatus, report: (BatchCheck.Finding) -> Void
    ) async throws(PrefetchError) -> Result {
        let entries = try await BatchEntries(of: status, queue: queue)
        let rule = CacheKeyRule(status.options)
        let own = cache.folder.id
        var result = Result()
        result.lost = entries.lost
        var outcomes = OutcomeReader(queue: queue, status: status, .caches)
        var index = 0
        try await entries.forEach { entry async throws(PrefetchError) in
            let found = try await outcomes.result(at: index)
            index += 1
            guard let outcome = found.outcome, !outcome.isSkipped, !entry.isLost else { return true }
            let key = try? rule.key(for: entry.url, entry.settings)
            if let key, cache.existingPath(forKey: key) != nil {
                result.present += 1
            } else if let home = found.cache, home.id != own {
                result.elsewhere[home, default: 0] += 1
            } else {
                report(
                    BatchCheck.Finding(
                        batch: status.id, invariant: "I5",
                        message: "line \(entry.line) ended \(outcome.name), but its file is not there"))
            }
            return true
        }
        return result
    }
}

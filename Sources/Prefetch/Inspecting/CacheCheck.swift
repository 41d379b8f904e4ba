internal import Redis
package import WebImage

/// Checks that the images of a batch are in the given cache: I5. Changes nothing.
package struct CacheCheck: Sendable {
    package struct Result: Sendable {
        package var present = 0
        /// Images in caches of other machines, with the number in each.
        package var elsewhere: [BatchCache: Int] = [:]
    }

    private static let step = 16_384

    let queue: PrefetchQueue
    let cache: DiskCache

    package init(queue: PrefetchQueue, cache: DiskCache) { (self.queue, self.cache) = (queue, cache) }

    /// Checks each image of a batch's list. An image that was stored in another cache and is missing here is only counted.
    /// * `found`: called for each missing image.
    /// - Throws: `notFound`, `unreadableList` if the list is missing or has changed; `redisUnavailable`.
    package func run(
        _ status: BatchStatus, found: (BatchCheck.Finding) -> Void
    ) async throws(PrefetchError) -> Result {
        let entries = try await BatchEntries(of: status, queue: queue)
        let rule = CacheKeyRule(status.options)
        let own = cache.folder.id
        var result = Result()
        var index = 0
        var block = Block()
        try await entries.forEach { entry async throws(PrefetchError) in
            if index % Self.step == 0 { block = try await read(status.id, index..<index + Self.step) }
            let place = index % Self.step
            index += 1
            guard let outcome = PrefetchOutcome(code: block.outcomes[place]), !outcome.isSkipped else { return true }
            let home = block.caches[block.places.isEmpty ? 0 : block.places[place]]
            let key = try? rule.key(for: entry.url, entry.settings)
            if let key, cache.existingPath(forKey: key) != nil {
                result.present += 1
            } else if let home, home.id != own {
                result.elsewhere[home, default: 0] += 1
            } else {
                found(
                    BatchCheck.Finding(
                        batch: status.id, invariant: "I5",
                        message: "line \(entry.line) ended \(outcome.name), but its file is not there"))
            }
            return true
        }
        return result
    }

    private struct Block {
        var outcomes: [UInt8] = []
        var caches = BatchCaches()
        /// Empty if all images are in the first cache.
        var places: [UInt8] = []
    }

    /// Missing bytes read as open; the list may be longer than the batch.
    private func read(_ batch: String, _ range: Range<Int>) async throws(PrefetchError) -> Block {
        do throws(RedisError) {
            var block = Block()
            block.outcomes = try await queue.results.outcomes(of: batch, range: range)
            block.caches = try await queue.results.caches(of: batch)
            if block.caches.count > 1 { block.places = try await queue.results.places(of: batch, range: range) }
            return block
        } catch {
            throw PrefetchError(error)
        }
    }
}

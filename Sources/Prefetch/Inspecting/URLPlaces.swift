internal import Redis
internal import WebImage

extension URLFacts {
    /// An image of the URL in the cache of another machine.
    package struct Place: Sendable {
        package var batch: BatchStatus
        /// Line of the batch's list, from 1.
        package var line: Int
        package var outcome: PrefetchOutcome
        package var cache: BatchCache
    }

    /// The place of a URL's image in the newest of these batches that has one, if that is another cache than `cache`. Reads the lists of
    /// batches with images in other caches, newest first, as far as they can be read here.
    /// * `unread`: called for batches whose list cannot be read.
    static func place(
        of url: String, in batches: [BatchStatus], besides cache: String?, queue: PrefetchQueue,
        unread: (String) -> Void
    ) async throws(PrefetchError) -> Place? {
        for status in batches where status.counts.finished > status.counts.skipped {
            let caches: BatchCaches
            do throws(RedisError) { caches = try await queue.results.caches(of: status.id) } catch {
                throw PrefetchError(error)
            }
            guard caches.all.contains(where: { $0.id != cache }) else { continue }
            do throws(PrefetchError) {
                guard let (index, line) = try await index(of: url, status, queue) else { continue }
                var outcomes = OutcomeReader(queue: queue, status: status, .caches)
                let found = try await outcomes.result(at: index)
                if let outcome = found.outcome, !outcome.isSkipped, let cache = found.cache {
                    return Place(batch: status, line: line, outcome: outcome, cache: cache)
                }
            } catch {
                guard error.kind == .notFound || error.kind == .unreadableList else { throw error }
                unread(status.id)
            }
        }
        return nil
    }

    /// The index of the first entry with this URL, and its line.
    private static func index(
        of url: String, _ status: BatchStatus, _ queue: PrefetchQueue
    ) async throws(PrefetchError) -> (index: Int, line: Int)? {
        var index = -1
        var line: Int?
        try await BatchEntries(of: status, queue: queue).forEach { entry async throws(PrefetchError) in
            index += 1
            if entry.url.hasBytes(of: url), !entry.isLost { line = entry.line }
            return line == nil
        }
        return line.map { (index, $0) }
    }

    /// Entries at the beginning of a list that say whether lines have headers or mirrors: a list of URLs alone is not read to its end.
    private static let typical = 4_096

    /// The keys of its lines with this URL that have headers or mirrors of their own.
    static func lineKeys(
        of url: String, _ status: BatchStatus, _ queue: PrefetchQueue
    ) async throws(PrefetchError) -> [String] {
        let rule = CacheKeyRule(status.options)
        var keys: [String] = []
        var (count, hasSources) = (0, false)
        try await BatchEntries(of: status, queue: queue).forEach { entry async throws(PrefetchError) in
            count += 1
            guard let settings = entry.settings, settings.source != nil else { return hasSources || count < typical }
            hasSources = true
            guard entry.url.hasBytes(of: url), let key = try? rule.key(for: url, settings) else { return true }
            keys.append(key)
            return keys.count < 100
        }
        return keys
    }
}

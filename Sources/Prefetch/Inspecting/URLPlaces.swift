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
                let found = try await outcome(index, of: status.id, queue, caches)
                if let (outcome, cache) = found {
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
            if entry.url.hasBytes(of: url) { line = entry.line }
            return line == nil
        }
        return line.map { (index, $0) }
    }

    /// The outcome of an index and the cache of its image; nil without an image.
    private static func outcome(
        _ index: Int, of batch: String, _ queue: PrefetchQueue, _ caches: BatchCaches
    ) async throws(PrefetchError) -> (PrefetchOutcome, BatchCache)? {
        do throws(RedisError) {
            let range = index..<index + 1
            let code = try await queue.results.outcomes(of: batch, range: range)[0]
            let place = try await queue.results.places(of: batch, range: range)[0]
            guard let outcome = PrefetchOutcome(code: code), !outcome.isSkipped, let cache = caches[place] else {
                return nil
            }
            return (outcome, cache)
        } catch {
            throw PrefetchError(error)
        }
    }
}

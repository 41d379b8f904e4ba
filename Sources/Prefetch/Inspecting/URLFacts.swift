internal import Redis
package import WebImage

/// What a queue and a cache know of one URL.
package struct URLFacts: Sendable {
    /// How it ended in one batch.
    package struct Ending: Sendable {
        /// The batch, as it was when it was looked at.
        package var batch: BatchStatus
        /// A detail for each of its lines that has this URL and was skipped, in their order; never empty.
        package var details: [FailureDetail]
    }

    /// The time of the reading in Redis, ms since 1970.
    package var at: Int
    /// What the list of failed URLs says; nil where it is not on it.
    package var listing: FailedURLEntry?
    /// Its image; nil where there is none, or no cache was given.
    package var image: CacheEntry?
    /// Its image on another machine; nil where it is in the cache that was looked into, or no batch knows of one.
    package var place: Place?
    /// Newest batch first.
    package var endings: [Ending]
    /// Batches whose details were looked through.
    package var batchesRead: Int
    /// Batches whose list cannot be read here, and that keep fewer details than they have failures or have images on other machines.
    package var unread: [String] = []
    /// Batches Redis has.
    package var batchCount: Int

    /// Whether anything is known.
    package var isKnown: Bool { listing != nil || image != nil || place != nil || !endings.isEmpty }

    /// Looks everywhere.
    ///
    /// * `url`: as it stood in a list, byte for byte.
    /// * `key`: its key in the cache.
    /// * `cache`: where its image may be; nil: nobody looks.
    /// * `batches`: how many of the newest are looked through. Costs the transfer of what they keep of skipped URLs, and a walk over the
    ///   list of a batch that keeps fewer details than it has failures, or, where the image is not in `cache`, has images in another.
    /// * `listPath`: where the list of such a batch is now, if not where it was read.
    /// - Throws: what talking to Redis throws; `inputOutput` where the cache cannot be read.
    package static func read(
        _ url: String, key: String, queue: PrefetchQueue, cache: DiskCache?, batches: Int, listPath: String? = nil
    ) async throws(PrefetchError) -> URLFacts {
        var facts: URLFacts
        let statuses: [BatchStatus]
        do throws(RedisError) {
            let (listing, at) = try await queue.failedURLs.find(url)
            let ids = try await queue.catalog.ids()
            facts = URLFacts(
                at: at, listing: listing, image: nil, endings: [], batchesRead: min(batches, ids.count),
                batchCount: ids.count)
            statuses = try await queue.batches.statuses(of: ids.suffix(batches).reversed())
        } catch {
            throw PrefetchError(error)
        }
        for status in statuses {
            var details: [FailureDetail]
            let kept: Int
            do throws(RedisError) {
                details = try await queue.results.keptDetails(of: status.id, url: url)
                kept = try await queue.results.detailsKept(of: status.id)
            } catch {
                throw PrefetchError(error)
            }
            if kept < status.counts.skipped - status.counts[.cancelled] {
                do throws(PrefetchError) {
                    details = try await listedFailures(url, status, queue, listPath)
                } catch {
                    guard error.kind == .notFound || error.kind == .unreadableList else { throw error }
                    facts.unread.append(status.id)
                }
            }
            if !details.isEmpty { facts.endings.append(Ending(batch: status, details: details)) }
        }
        do throws(WebImageError) {
            facts.image = try cache?.images.find(CacheKey(key), atLeast: .none)
        } catch {
            throw PrefetchError(.inputOutput, error.message, hint: "name a cache that this user may read: --cache DIR")
        }
        guard facts.image == nil else { return facts }
        var unread: [String] = []
        facts.place = try await place(
            of: url, in: statuses, besides: cache?.folder.id, queue: queue, listPath: listPath,
            unread: { unread.append($0) })
        facts.unread += unread.filter { !facts.unread.contains($0) }
        return facts
    }
}

extension URLFacts {
    /// The failures of a URL in a batch that does not keep the details of all, by line.
    private static func listedFailures(
        _ url: String, _ status: BatchStatus, _ queue: PrefetchQueue, _ listPath: String?
    ) async throws(PrefetchError) -> [FailureDetail] {
        var found: [FailureDetail] = []
        func walk(_ path: String?) async throws(PrefetchError) {
            try await FailureReader(queue: queue, status: status, listPath: path).forEach { failure in
                if failure.url == url, failure.outcome != .cancelled { found.append(failure) }
                return found.count < 1_000
            }
        }
        // The list that was named is that of one batch; the others have theirs.
        if let listPath, (try? await walk(listPath)) != nil { return found }
        found = []
        try await walk(nil)
        return found
    }
}

internal import Redis
package import WebImage

package struct URLFacts: Sendable {
    package struct Ending: Sendable {
        package var batch: BatchStatus
        /// One detail for each of its skipped lines with this URL, in order; never empty.
        package var details: [FailureDetail]
    }

    /// Time of the reading in Redis, ms since 1970.
    package var at: Int
    package var listing: FailedURLEntry?
    /// Nil if it is not in the given cache, or none was given.
    package var image: CacheEntry?
    /// The key that the image was found under.
    package var key: String?
    /// Its image on another machine; nil if it is in the given cache, or no batch has one.
    package var place: Place?
    /// Newest batch first.
    package var endings: [Ending]
    package var batchesRead: Int
    /// Batches whose list cannot be read here, and that have fewer details than failures, or images on other machines.
    package var unread: [String] = []
    package var batchCount: Int

    package enum ListingState: String, Sendable, CaseIterable {
        /// It is not requested.
        case listed
        /// The next batch that has it requests it.
        case lapsed
    }

    /// Nil if it is not on the list.
    package var listingState: ListingState? {
        listing.map { $0.hasLapsed(at: at) ? .lapsed : .listed }
    }

    package var isKnown: Bool { listing != nil || image != nil || place != nil || !endings.isEmpty }

    /// Collects everything.
    /// * `url`: as in a list, byte for byte.
    /// * `rule`: of its key in the cache, where no batch says another one.
    /// * `settings`: of its line; nil: of each line that has it.
    /// * `cache`: searched for its image, if given.
    /// * `batches`: how many of the newest are searched. Transfers their details of skipped URLs, and reads the list of a batch that has
    ///   fewer details than failures, or, if the image is not in `cache`, images in another cache.
    /// - Throws: errors of Redis; `inputOutput` if the cache cannot be read.
    package static func read(
        _ url: String, _ settings: URLSettings? = nil, rule: CacheKeyRule = .url, queue: PrefetchQueue,
        cache: DiskCache?, batches: Int
    ) async throws(PrefetchError) -> URLFacts {
        var facts: URLFacts
        let statuses: [BatchStatus]
        do throws(RedisError) {
            let found = try await queue.failedURLs.find(url)
            let ids = try await queue.catalog.ids()
            facts = URLFacts(
                at: found.at, listing: found.entry, image: nil, endings: [],
                batchesRead: min(batches, ids.count), batchCount: ids.count)
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
                    details = try await listedFailures(url, status, queue)
                } catch {
                    guard error.kind == .notFound || error.kind == .unreadableList else { throw error }
                    facts.unread.append(status.id)
                }
            }
            if !details.isEmpty { facts.endings.append(Ending(batch: status, details: details)) }
        }
        guard let cache else { return try await facts.withPlace(url, statuses, queue, besides: nil) }
        let keys = try Self.keys(of: url, settings, rule, statuses)
        for key in keys where facts.image == nil { try facts.look(for: key, in: cache) }
        if facts.image == nil, settings == nil {
            for status in statuses where facts.image == nil && status.counts.finished > status.counts.skipped {
                // A list that cannot be read is named below, or was.
                for key in (try? await lineKeys(of: url, status, queue)) ?? [] where facts.image == nil {
                    try facts.look(for: key, in: cache)
                }
            }
        }
        guard facts.image == nil else { return facts }
        return try await facts.withPlace(url, statuses, queue, besides: cache.folder.id)
    }

    /// The keys of a URL by itself: what the newest batch stores comes first.
    private static func keys(
        of url: String, _ settings: URLSettings?, _ rule: CacheKeyRule, _ statuses: [BatchStatus]
    ) throws(PrefetchError) -> [String] {
        let own: String
        do throws(WebImageError) { own = try rule.key(for: url, settings) } catch {
            throw PrefetchError(.configuration, error.message)
        }
        let others = statuses.map { try? CacheKeyRule($0.options).key(for: url, settings) }
        let isFirst = others.first.map { $0?.hasBytes(of: own) ?? true } ?? true
        var known: Set<ByteText> = []
        return ((isFirst ? [own] : []) + others.compactMap { $0 } + [own]).filter {
            known.insert(ByteText($0)).inserted
        }
    }

    private mutating func look(for key: String, in cache: DiskCache) throws(PrefetchError) {
        do throws(WebImageError) { image = try cache.images.find(CacheKey(key), atLeast: .none) } catch {
            throw PrefetchError(.inputOutput, error.message, hint: "name a cache that this user may read: --cache DIR")
        }
        if image != nil { self.key = key }
    }

    private func withPlace(
        _ url: String, _ statuses: [BatchStatus], _ queue: PrefetchQueue, besides cache: String?
    ) async throws(PrefetchError) -> URLFacts {
        var facts = self
        var unread: [String] = []
        facts.place = try await Self.place(
            of: url, in: statuses, besides: cache, queue: queue,
            unread: { unread.append($0) })
        facts.unread += unread.filter { !facts.unread.contains($0) }
        return facts
    }
}

extension URLFacts {
    /// The failures of a URL in a batch that does not keep all details, by line.
    private static func listedFailures(
        _ url: String, _ status: BatchStatus, _ queue: PrefetchQueue
    ) async throws(PrefetchError) -> [FailureDetail] {
        var found: [FailureDetail] = []
        try await FailureReader(queue: queue, status: status).forEach { failure in
            if failure.url.hasBytes(of: url), failure.outcome != .cancelled { found.append(failure) }
            return found.count < 1_000
        }
        return found
    }
}

internal import PrefetchModel
package import WebImage

/// What a list holds and what of it a cache has, counted in one pass and in bounded memory.
package struct ListSurvey: Sendable {
    /// Distinct URLs that are remembered to find duplicates: about 40 MB.
    package static let mostRemembered = 2_000_000
    /// Hosts that are counted by name.
    package static let maxHosts = 100_000

    package struct Host: Sendable, Equatable {
        package var name: String
        package var urls: Int
    }

    /// URLs, invalid lines not included.
    package private(set) var urls = 0
    package private(set) var invalid = 0
    /// URLs that were in the list before, under the rule of the cache keys.
    package private(set) var duplicates = 0
    /// Whether there were more distinct URLs than are remembered, so there may be more duplicates.
    package private(set) var mayHaveMoreDuplicates = false
    /// URLs with an image in the cache, duplicates not included.
    package private(set) var cached = 0
    /// The hosts with the most URLs, at most ten.
    package private(set) var hosts: [Host] = []
    /// URLs of hosts that are not counted by name.
    package private(set) var urlsOfOtherHosts = 0

    /// URLs that are neither duplicates nor in the cache.
    package var missing: Int { urls - duplicates - cached }

    /// Counts a list.
    ///
    /// * `cache`: nil: there is none yet.
    /// * `remembering`, `hosts`: the bounds.
    /// - Throws: `unreadableList`.
    package init(
        _ list: BatchEntries, cache: DiskCache?, rule: CacheKeyRule, remembering most: Int = mostRemembered,
        hosts maxHosts: Int = maxHosts
    ) async throws(PrefetchError) {
        var known: Set<Int> = []
        var counts: [ByteText: Int] = [:]
        try await list.forEach { entry async throws(PrefetchError) in
            guard !entry.isInvalid, let url = try? RequestURL(entry.url),
                let key = try? rule.key(for: entry.url, entry.settings)
            else {
                invalid += 1
                return true
            }
            urls += 1
            let host = url.host
            if counts[host] != nil || counts.count < maxHosts {
                counts[host, default: 0] += 1
            } else {
                urlsOfOtherHosts += 1
            }
            let hash = ByteText(key).hashValue
            if known.contains(hash) {
                duplicates += 1
                return true
            }
            if known.count < most { known.insert(hash) } else { mayHaveMoreDuplicates = true }
            if cache?.existingPath(forKey: key) != nil { cached += 1 }
            return true
        }
        hosts = counts.map { Host(name: $0.key.text, urls: $0.value) }
            .sorted { ($1.urls, $0.name) < ($0.urls, $1.name) }
        hosts = Array(hosts.prefix(10))
    }
}

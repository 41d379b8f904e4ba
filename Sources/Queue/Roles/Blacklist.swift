package import Redis

/// The blacklist, shared by all workers of the queue.
package struct Blacklist: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    package struct FailedURL: Sendable, Equatable {
        /// The URL as in a list, byte for byte.
        package var url: String
        /// Without a date and a reason if it was added by hand.
        package var entry: FailedURLEntry
    }

    private static let enlist = QueueScript.script(PackageResources.ENLIST_lua)

    /// Adds URLs that never expire, whatever the batches' settings.
    /// * `urls`: at most some thousands.
    /// Returns how many were not on it.
    package func add(_ urls: [String]) async throws(RedisError) -> Int {
        guard !urls.isEmpty else { return 0 }
        return try await redis.run(Self.enlist, urls.map { RedisArgument($0) }).int ?? 0
    }

    private static let unlist = QueueScript.script(PackageResources.UNLIST_lua)

    /// Removes URLs; returns how many were on it.
    /// * `urls`: at most some thousands.
    package func remove(_ urls: [String]) async throws(RedisError) -> Int {
        guard !urls.isEmpty else { return 0 }
        return try await redis.run(Self.unlist, urls.map { RedisArgument($0) }).int ?? 0
    }

    /// Removes all URLs in one step; the memory is freed in the background.
    package func removeAll() async throws(RedisError) {
        let keys = redis.keys
        let all = [keys.failed, keys.failedMeta, keys.failedExpiring, keys.failedPermanent].map {
            RedisArgument($0)
        }
        let replies = try await redis.read([
            [RedisArgument("UNLINK")] + all, ["HDEL", RedisArgument(redis.keys.failedLimit), "removed"],
        ])
        for reply in replies { _ = try reply.get() }
    }

    package func count() async throws(RedisError) -> Int {
        try await redis.read([["SCARD", RedisArgument(redis.keys.failed)]])[0].get().int ?? 0
    }

    /// What is known of one URL.
    package struct Finding: Sendable {
        /// Nil if it is not on the list.
        package var entry: FailedURLEntry?
        /// The time of Redis, ms since 1970.
        package var at: Int
    }

    package func find(_ url: String) async throws(RedisError) -> Finding {
        let replies = try await redis.read(
            redis.clockCommands + [
                // In this order: one that is taken off in between has no details, like one that was added by hand.
                ["HGET", RedisArgument(redis.keys.failedMeta), RedisArgument(url)],
                ["SISMEMBER", RedisArgument(redis.keys.failed), RedisArgument(url)],
            ])
        var finding = Finding(at: try ScriptRunner.time(replies))
        guard try replies[3].get().int == 1 else { return finding }
        finding.entry = FailedURLEntry(meta: try replies[2].get().string ?? "")
        return finding
    }

    /// Approximate size of a group of ``forEach(_:)``.
    private static let group = 10_000

    /// Calls `body` with groups of failed URLs until it returns false, each group sorted: a list of less than 10,000 is sorted as a whole,
    /// a longer one in blocks. In constant memory.
    ///
    /// URLs added or removed meanwhile may be missing or present, and after a change of the set's size a URL may come twice (SSCAN).
    package func forEach(
        _ body: ([FailedURL]) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        var cursor = "0"
        var group: [FailedURL] = []
        repeat {
            do throws(RedisError) {
                let reply = try await redis.read([
                    ["SSCAN", RedisArgument(redis.keys.failed), RedisArgument(cursor), "COUNT", "1000"]
                ])[0].get().array
                cursor = reply?.first?.string ?? "0"
                group += try await withReasons((reply?.last?.array ?? []).compactMap(\.bytes))
            } catch {
                throw PrefetchError(error)
            }
            guard group.count >= Self.group || (cursor == "0" && !group.isEmpty) else { continue }
            group.sort { $0.url < $1.url }
            guard try await body(group) else { return }
            group.removeAll(keepingCapacity: true)
        } while cursor != "0"
    }

    private func withReasons(_ members: [[UInt8]]) async throws(RedisError) -> [FailedURL] {
        guard !members.isEmpty else { return [] }
        let reasons =
            try await redis.read([
                ["HMGET", RedisArgument(redis.keys.failedMeta)] + members.map { RedisArgument($0) }
            ])[0].get().array ?? []
        return zip(members, reasons).map { member, reason in
            FailedURL(
                url: String(decoding: member, as: UTF8.self), entry: FailedURLEntry(meta: reason.string ?? ""))
        }
    }

    package struct Listing: Sendable, Equatable {
        package var entry: FailedURLEntry
        /// Whether it has lapsed for this caller: its URL is requested, and an image takes it off.
        package var hasLapsed = false
    }

    /// The failed URLs among these, by position.
    /// * `ttl`: see ``FailedURLEntry/hasLapsed(at:for:)``.
    package func listed(_ urls: [String], ttl: BlacklistTTL) async throws(RedisError) -> [Int: Listing] {
        guard !urls.isEmpty else { return [:] }
        // Most are not on it.
        let members = try await redis.read([
            [RedisArgument("SMISMEMBER"), RedisArgument(redis.keys.failed)] + urls.map { RedisArgument($0) }
        ])
        let positions = try (members[0].get().array ?? []).enumerated().filter { $1.int == 1 }.map(\.offset)
        guard !positions.isEmpty else { return [:] }
        let replies = try await redis.read(
            redis.clockCommands + [
                ["HMGET", RedisArgument(redis.keys.failedMeta)] + positions.map { RedisArgument(urls[$0]) },
                // Once more, behind the details: one that a sweep has taken off meanwhile has none, like one that was added by hand.
                ["SMISMEMBER", RedisArgument(redis.keys.failed)] + positions.map { RedisArgument(urls[$0]) },
            ])
        let at = try ScriptRunner.time(replies)
        let metas = try replies[2].get().array ?? []
        let areListed = try replies[3].get().array ?? []
        var found: [Int: Listing] = [:]
        for (position, (meta, isListed)) in zip(positions, zip(metas, areListed)) where isListed.int == 1 {
            let entry = FailedURLEntry(meta: meta.string ?? "")
            found[position] = Listing(entry: entry, hasLapsed: entry.hasLapsed(at: at, for: ttl))
        }
        return found
    }

    package struct Limit: Sendable, Equatable {
        /// The most URLs that batches together may list, 500,000 unless Redis has another number; 0 = no limit. URLs added by hand do not
        /// count. Excess URLs are removed oldest first, a few with each heartbeat and each report of failures.
        package var most = PrefetchKeys.failedLimitDefault
        package var removed = 0
    }

    package func limit() async throws(RedisError) -> Limit {
        let reply = try await redis.read([["HMGET", RedisArgument(redis.keys.failedLimit), "max", "removed"]])[0].get()
        let values = reply.array ?? []
        var limit = Limit()
        if let most = values.first?.count { limit.most = most }
        limit.removed = values.last?.count ?? 0
        return limit
    }
}

package import Redis

extension PrefetchQueue {
    /// A member of the set of failed URLs.
    package struct FailedURL: Sendable, Equatable {
        /// The URL as it stood in a list, byte for byte.
        package var url: String
        /// Why it is there; without a date and a reason where it was added by hand.
        package var entry: FailedURLEntry
    }

    private static let enlist = script(PackageResources.ENLIST_lua)

    /// Puts URLs onto the list, to stay until they are taken off, whatever a batch says about entries that lapse.
    ///
    /// * `urls`: at most some thousands.
    /// Returns how many were not on it.
    package func addFailedURLs(_ urls: [String]) async throws(RedisError) -> Int {
        guard !urls.isEmpty else { return 0 }
        return try await run(Self.enlist, urls.map { RedisArgument($0) }).int ?? 0
    }

    private static let unlist = script(PackageResources.UNLIST_lua)

    /// Takes URLs off the list; returns how many were on it.
    ///
    /// * `urls`: at most some thousands.
    package func removeFailedURLs(_ urls: [String]) async throws(RedisError) -> Int {
        guard !urls.isEmpty else { return 0 }
        return try await run(Self.unlist, urls.map { RedisArgument($0) }).int ?? 0
    }

    /// Takes all of them off, in one step; the memory is freed in the background.
    package func removeAllFailedURLs() async throws(RedisError) {
        let all = [keys.failed, keys.failedMeta, keys.failedLapses, keys.failedStays].map { RedisArgument($0) }
        let replies = try await read([
            [RedisArgument("UNLINK")] + all, ["HDEL", RedisArgument(keys.failedLimit), "removed"],
        ])
        for reply in replies { _ = try reply.get() }
    }

    /// How many there are.
    package func failedURLCount() async throws(RedisError) -> Int {
        try await read([["SCARD", RedisArgument(keys.failed)]])[0].get().int ?? 0
    }

    /// What the list says of one URL, nil where it is not on it; and the time of Redis, ms since 1970.
    package func failedURL(_ url: String) async throws(RedisError) -> (entry: FailedURLEntry?, at: Int) {
        let replies = try await read(
            clockCommands + [
                ["SISMEMBER", RedisArgument(keys.failed), RedisArgument(url)],
                ["HGET", RedisArgument(keys.failedMeta), RedisArgument(url)],
            ])
        let isListed = try replies[2].get().int == 1
        return (isListed ? FailedURLEntry(meta: try replies[3].get().string ?? "") : nil, try Self.time(replies))
    }

    /// Members in one group of ``forEachFailedURL(_:)``, more or less.
    private static let group = 10_000

    /// Runs `body` with groups of the failed URLs until it returns false, each group in order: a list of less than 10,000 comes in
    /// order, a longer one in ordered blocks. In constant memory.
    ///
    /// What comes or goes meanwhile may be among them or not, and after a change of the set's size one may come twice (SSCAN).
    /// - Throws: what `body` throws; what talking to Redis throws.
    package func forEachFailedURL(
        _ body: ([FailedURL]) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        var cursor = "0"
        var group: [FailedURL] = []
        repeat {
            do throws(RedisError) {
                let reply = try await read([
                    ["SSCAN", RedisArgument(keys.failed), RedisArgument(cursor), "COUNT", "1000"]
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
            try await read([
                ["HMGET", RedisArgument(keys.failedMeta)] + members.map { RedisArgument($0) }
            ])[0].get().array ?? []
        return zip(members, reasons).map { member, reason in
            FailedURL(
                url: String(decoding: member, as: UTF8.self), entry: FailedURLEntry(meta: reason.string ?? ""))
        }
    }
}

package import Redis

/// Who writes which shard of a batch: one writer at a time owns it, from when its lines are queued until it is recorded as written.
package struct QueueShards: Sendable {
    /// How long a writer may be silent before another one takes what it owns, in milliseconds.
    package static let usualLease = 60_000

    /// A process that writes shards of a batch.
    package struct Writer: Sendable {
        /// Unique; without blanks.
        package var name: String
        /// The ``BatchCache/id`` of the cache that it reads.
        package var cache: String
        /// Milliseconds from each call.
        package var lease: Int
        /// Whether no other writer of the batch lives, whatever their leases say: what they own or have written is forgotten.
        package var isAlone = false

        package init(name: String, cache: String, lease: Int = usualLease) {
            (self.name, self.cache, self.lease) = (name, cache, lease)
        }
    }

    /// The lines of a shard.
    package enum Lines: Sendable, Equatable {
        /// So many of the first have ended.
        case ended(Int)
        /// Another writer owns the shard.
        case owned
        /// All have ended, and images are in other caches.
        case elsewhere
    }

    private static let script = QueueScript.script(PackageResources.SHARDS_lua)
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    /// Counts the lines of shards, and takes those that nobody owns.
    /// * `shards`: number, URL indices, and how many of the first are known to have ended.
    /// - Returns: nil if the batch is gone.
    package func count(
        _ shards: [(number: Int, entries: Range<Int>, ended: Int)], of batch: BatchIdentity, for writer: Writer
    ) async throws(RedisError) -> [Lines]? {
        let words = shards.flatMap { [$0.number, $0.entries.lowerBound, $0.entries.count, $0.ended] }
        return try await run("count", words, batch, writer).array?.map { reply in
            switch reply.int ?? 0 {
            case -1: .owned
            case -2: .elsewhere
            case let ended: .ended(max(0, ended))
            }
        }
    }

    /// Takes a shard to write it, also one that is written.
    /// - Returns: false if another writer owns it; nil if the batch is gone.
    package func take(_ shard: Int, of batch: BatchIdentity, for writer: Writer) async throws(RedisError) -> Bool? {
        try await run("take", [shard], batch, writer).int.map { $0 == 1 }
    }

    /// Renews the lease of a writer that has taken a shard.
    /// - Returns: false if another writer has taken it since; nil if the batch is gone.
    package func keep(_ shard: Int, of batch: BatchIdentity, for writer: Writer) async throws(RedisError) -> Bool? {
        try await run("keep", [shard], batch, writer).int.map { $0 == 1 }
    }

    /// Records a shard as written.
    /// * `isFound`: whether it was there already. One that is recorded stays as it is then.
    /// - Returns: false if another writer owns it; nil if the batch is gone.
    package func record(
        _ shard: Int, of batch: BatchIdentity, bytes: Int, isFound: Bool = false, for writer: Writer
    ) async throws(RedisError) -> Bool? {
        try await run(isFound ? "found" : "record", [shard, bytes], batch, writer).int.map { $0 == 1 }
    }

    /// Gives up what a writer owns.
    package func leave(_ writer: Writer, of batch: BatchIdentity) async throws(RedisError) {
        _ = try await run("leave", [], batch, writer)
    }

    private func run(
        _ what: RedisArgument, _ numbers: [Int], _ batch: BatchIdentity, _ writer: Writer
    ) async throws(RedisError) -> RedisValue {
        try await redis.run(
            Self.script,
            [
                RedisArgument(batch.id), RedisArgument(batch.nonce), RedisArgument(writer.name),
                RedisArgument(writer.lease), RedisArgument(writer.cache), writer.isAlone ? "1" : "", what,
            ] + numbers.map { RedisArgument($0) })
    }
}

internal import Redis
internal import Threading
internal import WebImage

/// A run as a writer of shards.
package final class ShardOwner: Sendable {
    /// What it is called in the queue.
    fileprivate let name = String(UInt64.random(in: 0 ... .max), radix: 36)
    fileprivate let lease: Int
    /// Whether what others own or have written is forgotten, until that was said once.
    fileprivate let isAlone = Locked(false)

    /// * `lease`: how long it may be silent, in milliseconds.
    package init(lease: Int = QueueShards.usualLease) { self.lease = lease }

    /// No other run uses the cache: what a killed one owns is free at once.
    package func beginAlone() { isAlone.withLock { $0 = true } }
}

/// The shards of a batch in the queue, for one writer of them.
struct OwnedShards: Sendable {
    private let owner: ShardOwner
    private let writer: QueueShards.Writer
    private let batch: BatchIdentity
    private let queue: PrefetchQueue

    init(_ owner: ShardOwner, of batch: BatchIdentity, from cache: DiskCache, _ queue: PrefetchQueue) {
        (self.owner, self.batch, self.queue) = (owner, batch, queue)
        writer = QueueShards.Writer(name: owner.name, cache: BatchCache(cache).id, lease: owner.lease)
    }

    /// Counts the lines of shards, and takes those that nobody owns.
    /// - Throws: `notFound` if the batch is gone, `redisUnavailable`.
    func count(
        _ shards: [(number: Int, entries: Range<Int>, ended: Int)]
    ) async throws(PrefetchError) -> [QueueShards.Lines] {
        try await ask { writer throws(RedisError) in try await queue.shards.count(shards, of: batch, for: writer) }
    }

    /// Takes a shard to write it; false if another writer owns it.
    /// - Throws: as ``count(_:)``.
    func take(_ shard: Int) async throws(PrefetchError) -> Bool {
        try await ask { writer throws(RedisError) in try await queue.shards.take(shard, of: batch, for: writer) }
    }

    /// Renews the lease while it writes a shard; false if another writer has taken it since.
    /// - Throws: as ``count(_:)``.
    func keep(_ shard: Int) async throws(PrefetchError) -> Bool {
        try await ask { writer throws(RedisError) in try await queue.shards.keep(shard, of: batch, for: writer) }
    }

    /// Records a shard as written; false if another writer has taken it since.
    /// * `isFound`: whether it was there already.
    /// - Throws: as ``count(_:)``.
    func record(_ shard: Int, bytes: Int, isFound: Bool) async throws(PrefetchError) -> Bool {
        try await ask { writer throws(RedisError) in
            try await queue.shards.record(shard, of: batch, bytes: bytes, isFound: isFound, for: writer)
        }
    }

    /// Other writers need not wait for the end of the lease.
    func leave() async { try? await queue.shards.leave(writer, of: batch) }

    private func ask<Answer: Sendable>(
        _ body: (QueueShards.Writer) async throws(RedisError) -> Answer?
    ) async throws(PrefetchError) -> Answer {
        var writer = writer
        writer.isAlone = owner.isAlone.withLock { $0 }
        let answer: Answer?
        do throws(RedisError) { answer = try await body(writer) } catch { throw PrefetchError(error) }
        guard let answer else {
            throw PrefetchError(.notFound, "Redis no longer has the batch \(batch.id)", hint: "run it again")
        }
        owner.isAlone.withLock { $0 = false }
        return answer
    }
}

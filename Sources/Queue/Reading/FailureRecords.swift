package import Redis

/// Reads the failure records of a batch in blocks of neighbouring indices.
package struct FailureRecords: Sendable {
    private let queue: PrefetchQueue
    private let status: BatchStatus

    package init(queue: PrefetchQueue, status: BatchStatus) {
        self.queue = queue
        self.status = status
    }

    /// Records by index. In a cancelled batch the indices in `open`, which have no outcome, get a record too.
    package func read(_ range: Range<Int>, open: [Int] = []) async throws(RedisError) -> [Int: FailureRecord] {
        var found: [Int: FailureRecord] = [:]
        guard !range.isEmpty else { return found }
        let chunks = (range.lowerBound / FailureRecord.chunk)...((range.upperBound - 1) / FailureRecord.chunk)
        let values =
            try await queue.redis.read([
                ["HMGET", RedisArgument(queue.keys.records(status.id))] + chunks.map { RedisArgument($0) }
            ])[0].get().array ?? []
        for (chunk, value) in zip(chunks, values) {
            guard let bytes = value.bytes else { continue }
            for (position, record) in FailureRecord.decode(bytes).records {
                let index = chunk * FailureRecord.chunk + position
                if range.contains(index) { found[index] = record }
            }
        }
        let seconds = status.ended > 0 ? (status.ended - status.created) / 1000 : nil
        for index in open { found[index] = FailureRecord(seconds: seconds) }
        return found
    }

    /// When a URL ended, ms since 1970; nil if unknown.
    package func time(of record: FailureRecord?) -> Int? { record?.seconds.map { status.created + $0 * 1000 } }
}

internal import Redis
internal import WebImage

/// Reads the skipped URLs of a batch in line order: from the details in Redis, beyond those from all failures' records and the list.
package struct FailureReader: Sendable {
    private let queue: PrefetchQueue
    private let status: BatchStatus
    private let noteLost: @Sendable ([ClosedRange<Int>]) -> Void

    /// * `lost`: called with the lines of the list that were changed since they were queued, where the list is needed.
    package init(
        queue: PrefetchQueue, status: BatchStatus, lost: @escaping @Sendable ([ClosedRange<Int>]) -> Void = { _ in }
    ) {
        (self.queue, self.status, noteLost) = (queue, status, lost)
    }

    /// Calls `body` with each skipped URL until it returns false.
    /// - Throws: `redisUnavailable`; `unreadableList` if an entry is only in the list and that cannot be read.
    package func forEach(_ body: (FailureDetail) async throws(PrefetchError) -> Bool) async throws(PrefetchError) {
        var outcomes = OutcomeReader(queue: queue, status: status, [.records, .details])
        let (kept, ended) = try await bridgingErrors { () async throws(RedisError) in
            let replies = try await queue.redis.read([
                ["HLEN", RedisArgument(queue.keys.skipped(status.id))],
                ["STRLEN", RedisArgument(queue.keys.outcomes(status.id))],
            ])
            return (try replies[0].get().int ?? 0, try replies[1].get().count ?? 0)
        }
        // Without the list, if Redis has every detail. No URL after the last outcome was skipped then, whatever the total.
        var index = 0
        if kept >= status.counts.skipped {
            all: while index < min(status.total, ended) {
                let (found, end) = try await outcomes.skipped(from: index)
                for (place, result) in found where place < status.total {
                    index = place
                    guard let detail = result.detail else { break all }
                    guard try await body(detail) else { return }
                }
                index = end
            }
            if index >= min(status.total, ended) { return }
        }
        let entries = try await BatchEntries(of: status, queue: queue)
        if !entries.lost.isEmpty { noteLost(entries.lost) }
        try await entries.forEach(from: index) { entry async throws(PrefetchError) in
            defer { index += 1 }
            let result = try await outcomes.result(at: index)
            guard let outcome = result.outcome, outcome.isSkipped else { return true }
            return try await body(result.detail ?? FailureDetail(outcome, of: entry, result.failure, result.ended))
        }
    }
}

extension FailureDetail {
    /// Of an entry of which Redis keeps no detail.
    fileprivate init(
        _ outcome: PrefetchOutcome, of entry: PrefetchJob.Entry, _ record: FailureRecord?, _ ended: Int?
    ) {
        self.init(
            line: entry.line, url: entry.isLost ? "" : entry.url, outcome: outcome, httpStatus: record?.httpStatus,
            tries: record?.tries ?? 0, detail: entry.isLost ? entry.url : "no detail kept", settings: entry.settings)
        (self.ended, isKept) = (ended, false)
    }

    /// As the entry of a retry.
    var entry: PrefetchJob.Entry {
        url.isEmpty
            ? PrefetchJob.Entry(lostAt: line)
            : PrefetchJob.Entry(line: line, url: url, isInvalid: outcome == .invalidURL, settings: settings)
    }
}

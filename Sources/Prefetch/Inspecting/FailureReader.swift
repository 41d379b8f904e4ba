internal import WebImage
internal import Redis

/// Reads the skipped URLs of a batch in line order: from the details in Redis, beyond those from all failures' records and the list.
package struct FailureReader: Sendable {
    /// The detail of an entry of which Redis keeps none.
    private static let noDetail = "no detail kept"

    private let queue: PrefetchQueue
    private let status: BatchStatus

    package init(queue: PrefetchQueue, status: BatchStatus) {
        self.queue = queue
        self.status = status
    }

    /// Calls `body` with each skipped URL until it returns false.
    /// - Throws: `redisUnavailable`; `unreadableList` if an entry is only in the list and that cannot be read.
    package func forEach(_ body: (FailureDetail) async throws(PrefetchError) -> Bool) async throws(PrefetchError) {
        var missing = false
        try await forEachKept { detail async throws(PrefetchError) in
            guard let detail else {
                missing = true
                return false
            }
            return try await body(detail)
        }
        guard missing else { return }
        // An entry without a detail: go on along the list, from the first entry that was not returned yet.
        try await forEachInList(body)
    }

    private static let step = 16_384

    /// Every skipped index in order, nil if Redis has no detail of it. Stops if `body` returns false.
    private func forEachKept(
        _ body: (FailureDetail?) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        if status.counts.skipped > 0, try await isIncomplete() {
            _ = try await body(nil)
            return
        }
        // No URL after the last outcome was skipped, whatever the total.
        let end = min(status.total, try await outcomeCount())
        for start in stride(from: 0, to: end, by: Self.step) {
            for item in try await failures(start..<min(start + Self.step, end)) {
                guard try await body(item.detail) else { return }
            }
        }
    }

    /// Whether any skipped URL has no detail in Redis.
    private func isIncomplete() async throws(PrefetchError) -> Bool {
        let kept = try await bridgingErrors { () async throws(RedisError) in
            try await queue.redis.read([["HLEN", RedisArgument(queue.keys.skipped(status.id))]])[0].get().int ?? 0
        }
        return kept < status.counts.skipped
    }

    private func outcomeCount() async throws(PrefetchError) -> Int {
        try await bridgingErrors { () async throws(RedisError) in
            try await queue.redis.read([["STRLEN", RedisArgument(queue.keys.outcomes(status.id))]])[0].get().count ?? 0
        }
    }

    private func forEachInList(_ body: (FailureDetail) async throws(PrefetchError) -> Bool) async throws(PrefetchError)
    {
        let entries = try await BatchEntries(of: status, queue: queue)
        var index = 0
        var known: [Int: Failure] = [:]
        try await entries.forEach { entry async throws(PrefetchError) in
            if index % Self.step == 0 {
                let found = try await failures(index..<max(index, min(index + Self.step, status.total)))
                known = Dictionary(uniqueKeysWithValues: found.map { ($0.index, $0) })
            }
            defer { index += 1 }
            guard let failure = known[index] else { return true }
            return try await body(failure.detail ?? failure.detail(of: entry))
        }
    }

    private struct Failure {
        let index: Int
        let outcome: PrefetchOutcome
        let detail: FailureDetail?
        let record: FailureRecord?
        let ended: Int?

        func detail(of entry: PrefetchJob.Entry) -> FailureDetail {
            var detail = FailureDetail(
                line: entry.line, url: entry.url, outcome: outcome, httpStatus: record?.httpStatus,
                tries: record?.tries ?? 0, detail: FailureReader.noDetail, settings: entry.settings)
            (detail.ended, detail.isKept) = (ended, false)
            return detail
        }
    }

    private func failures(_ range: Range<Int>) async throws(PrefetchError) -> [Failure] {
        let found = try await skipped(range)
        let reader = FailureRecords(queue: queue, status: status)
        let (details, records) = try await bridgingErrors { () async throws(RedisError) in
            let open = found.filter { $0.outcome == .cancelled }.map(\.index)
            return (
                try await queue.results.details(of: status.id, indices: found.map(\.index)),
                found.isEmpty ? [:] : try await reader.read(range, open: open)
            )
        }
        return found.map { index, outcome in
            let ended = reader.time(of: records[index])
            var detail = details[index]
            detail?.ended = ended
            return Failure(index: index, outcome: outcome, detail: detail, record: records[index], ended: ended)
        }
    }

    private func skipped(_ range: Range<Int>) async throws(PrefetchError) -> [(index: Int, outcome: PrefetchOutcome)] {
        let codes = try await bridgingErrors { () async throws(RedisError) in
            try await queue.results.outcomes(of: status.id, range: range)
        }
        return zip(range, codes).compactMap { index, code in
            if code == 0 { return status.state == .cancelled ? (index, .cancelled) : nil }
            guard let outcome = PrefetchOutcome(code: code), outcome.isSkipped else { return nil }
            return (index, outcome)
        }
    }
}

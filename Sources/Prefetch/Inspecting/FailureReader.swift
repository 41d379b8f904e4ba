internal import WebImage
internal import Redis

/// Reads what was skipped of a batch, in the order of its lines: from the details Redis keeps, and past those from the list.
package struct FailureReader: Sendable {
    private let queue: PrefetchQueue
    private let status: BatchStatus
    private let listPath: String?

    /// * `listPath`: where the list is now, if not where it was read.
    package init(queue: PrefetchQueue, status: BatchStatus, listPath: String? = nil) {
        self.queue = queue
        self.status = status
        self.listPath = listPath
    }

    /// Runs `body` with each skipped URL until it returns false.
    /// - Throws: `redisUnavailable`; `unreadableList` where an entry is only in the list and that cannot be read.
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
        // Some entry is known only by its outcome: walk the list beside the outcomes, from the start of what was not given yet.
        try await forEachInList(body)
    }

    private static let step = 16_384

    /// Every skipped index in order, nil where Redis has no detail of it. Stops where `body` says so.
    private func forEachKept(
        _ body: (FailureDetail?) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        if status.counts.skipped > 0, try await isIncomplete() {
            _ = try await body(nil)
            return
        }
        for start in stride(from: 0, to: status.total, by: Self.step) {
            let indices = try await skipped(start..<min(start + Self.step, status.total)).map(\.index)
            let details = try await redis { () async throws(RedisError) in
                try await queue.details(of: status.id, indices: indices)
            }
            for index in indices {
                guard try await body(details[index]) else { return }
            }
        }
    }

    /// Whether some skipped URL has no detail in Redis.
    private func isIncomplete() async throws(PrefetchError) -> Bool {
        let kept = try await redis { () async throws(RedisError) in
            try await queue.read([["HLEN", RedisArgument(queue.keys.skipped(status.id))]])[0].get().int ?? 0
        }
        return kept < status.counts.skipped
    }

    private func forEachInList(_ body: (FailureDetail) async throws(PrefetchError) -> Bool) async throws(PrefetchError)
    {
        let entries = try await BatchEntries(of: status, queue: queue, listPath: listPath)
        var index = 0
        var known: [Int: (outcome: PrefetchOutcome, detail: FailureDetail?)] = [:]
        try await entries.forEach { entry async throws(PrefetchError) in
            if index % Self.step == 0 {
                let found = try await skipped(index..<min(index + Self.step, status.total))
                let details = try await redis { () async throws(RedisError) in
                    try await queue.details(of: status.id, indices: found.map(\.index))
                }
                known = Dictionary(uniqueKeysWithValues: found.map { ($0.index, ($0.outcome, details[$0.index])) })
            }
            defer { index += 1 }
            guard let (outcome, detail) = known[index] else { return true }
            return try await body(
                detail
                    ?? FailureDetail(
                        line: entry.line, url: entry.url, outcome: outcome, detail: "no detail kept",
                        settings: entry.settings))
        }
    }

    private func skipped(_ range: Range<Int>) async throws(PrefetchError) -> [(index: Int, outcome: PrefetchOutcome)] {
        let codes = try await redis { () async throws(RedisError) in
            try await queue.outcomes(of: status.id, range: range)
        }
        return zip(range, codes).compactMap { index, code in
            if code == 0 { return status.state == .cancelled ? (index, .cancelled) : nil }
            guard let outcome = PrefetchOutcome(code: code), outcome.isSkipped else { return nil }
            return (index, outcome)
        }
    }

    private func redis<Success>(
        _ body: () async throws(RedisError) -> Success
    ) async throws(PrefetchError) -> Success {
        do throws(RedisError) { return try await body() } catch { throw PrefetchError(error) }
    }
}

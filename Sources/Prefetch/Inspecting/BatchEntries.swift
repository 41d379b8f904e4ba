internal import Redis
internal import WebImage

/// The entries of a batch in index order: the lines of its list or lists; for a retry, the skipped lines of the batch it retries.
package struct BatchEntries: Sendable {
    private enum Source: Sendable {
        case list(URLList)
        case lists([(segment: ListSegment, list: URLList)])
        case skipped(FailureReader)
    }

    private let source: Source
    package let total: Int

    package init(_ list: URLList) {
        source = .list(list)
        total = list.total
    }

    /// The lines of one list of an open batch, with their indices and line numbers in the batch.
    package init(_ list: URLList, as segment: ListSegment) {
        self.init([(segment, list)])
    }

    private init(_ lists: [(segment: ListSegment, list: URLList)]) {
        source = .lists(lists)
        total = lists.reduce(0) { $0 + $1.segment.total }
    }

    /// The entries of a batch in Redis; for an open one, as far as its status includes them.
    /// * `listPath`: the list's current path, if it has moved.
    /// - Throws: `unreadableList` if the list is needed but missing or changed; `notFound` if the retried batch is gone.
    package init(of status: BatchStatus, queue: PrefetchQueue, listPath: String? = nil) async throws(PrefetchError) {
        if let parent = status.retryOf {
            let found: BatchStatus?
            do throws(RedisError) { found = try await queue.batches.status(of: parent) } catch {
                throw PrefetchError(error)
            }
            guard let found, found.retriedBy == status.id else {
                throw PrefetchError(
                    .notFound, "\(status.id) retries \(parent), and Redis knows that batch no more",
                    hint: "submit the lines again that are still wanted")
            }
            self.init(skippedOf: found, queue: queue, listPath: listPath)
            return
        }
        if status.hasLists {
            self.init(try await Self.lists(of: status, queue: queue, listPath: listPath))
            return
        }
        let list: URLList
        do throws(PrefetchError) { list = try URLList(path: listPath ?? status.listPath) } catch {
            // The original path does not help: the hint asks for the current one.
            throw PrefetchError(
                error.kind, "the list of \(status.id) cannot be used: \(error.message)",
                hint: "give the file it was submitted from: --list FILE")
        }
        guard list.hash == status.listHash else {
            throw PrefetchError(
                .unreadableList, "\(list.path) is not the list of \(status.id) any more",
                hint: "give the file it was submitted from: --list FILE")
        }
        self.init(list)
    }

    private static func lists(
        of status: BatchStatus, queue: PrefetchQueue, listPath: String?
    ) async throws(PrefetchError) -> [(segment: ListSegment, list: URLList)] {
        let segments: [ListSegment]
        do throws(RedisError) { segments = try await queue.lists.segments(of: status.id) } catch {
            throw PrefetchError(error)
        }
        let places = try ListPlaces(listPath, of: status.id, segments)
        var lists: [(segment: ListSegment, list: URLList)] = []
        // Lists added since the status was read belong to the next status.
        for segment in segments where segment.total > 0 && segment.end <= status.total {
            lists.append((segment, try places.list(segment)))
        }
        return lists
    }

    /// Returns whether to go on with the next list.
    private static func forEach(
        of segment: ListSegment, _ list: URLList, from first: Int,
        _ body: (PrefetchJob.Entry) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) -> Bool {
        var left = segment.end - max(first, segment.base)
        var goesOn = true
        try await list.forEach(from: max(0, first - segment.base)) { entry async throws(PrefetchError) in
            // The file may have grown: lines after the end are not entries of this batch.
            guard left > 0 else { return false }
            left -= 1
            var entry = entry
            entry.line += segment.line
            goesOn = try await body(entry)
            return goesOn
        }
        return goesOn
    }

    package init(skippedOf status: BatchStatus, queue: PrefetchQueue, listPath: String? = nil) {
        source = .skipped(FailureReader(queue: queue, status: status, listPath: listPath))
        total = status.counts.skipped
    }

    /// Calls `body` with each entry from index `first` on, until it returns false.
    /// - Throws: errors of `body`; `unreadableList`, `redisUnavailable` if the entries cannot be read (any more).
    package func forEach(
        from first: Int = 0, _ body: (PrefetchJob.Entry) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        switch source {
        case .list(let list): try await list.forEach(from: first, body)
        case .lists(let lists):
            for (segment, list) in lists where segment.end > first {
                guard try await Self.forEach(of: segment, list, from: first, body) else { return }
            }
        case .skipped(let reader):
            var index = 0
            try await reader.forEach { failure async throws(PrefetchError) in
                index += 1
                guard index > first else { return true }
                let entry = PrefetchJob.Entry(
                    line: failure.line, url: failure.url, isInvalid: failure.outcome == .invalidURL,
                    settings: failure.settings)
                return try await body(entry)
            }
        }
    }
}

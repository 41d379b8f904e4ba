internal import Redis
internal import WebImage

/// The entries of a batch in index order: the lines of its list; for a retry, the skipped lines of the batch it retries.
package struct BatchEntries: Sendable {
    private enum Source: Sendable {
        case list(URLList)
        case stream(ListStream)
        /// Of a batch in Redis: its list may have more lines.
        case lines(ListPlace.Found, most: Int)
        case skipped(FailureReader)
    }

    private let source: Source
    /// Lines of the list that were changed since they were queued: their entries are lost.
    package private(set) var lost: [ClosedRange<Int>] = []
    /// Nil of a list that was not read to its end.
    package let total: Int?

    private init(_ source: Source, total: Int?) { (self.source, self.total) = (source, total) }

    package init(_ list: URLList) { self.init(.list(list), total: list.total) }

    package init(_ stream: ListStream) {
        self.init(.stream(stream), total: stream.isWhole ? stream.reading.total : nil)
    }

    /// The entries of a batch in Redis; of an open one, as far as its status includes them.
    /// - Throws: `unreadableList` if the list is needed but missing or changed; `notFound` if the retried batch is gone.
    package init(of status: BatchStatus, queue: PrefetchQueue) async throws(PrefetchError) {
        guard let parent = status.retryOf else {
            let found = try await ListPlace.find(status, queue: queue)
            self.init(.lines(found, most: status.total), total: status.total)
            lost = found.lost
            return
        }
        let found = try await bridgingErrors { () async throws(RedisError) in
            try await queue.batches.status(of: parent)
        }
        guard let found, found.retriedBy == status.id else {
            throw PrefetchError(
                .notFound, "\(status.id) retries \(parent), and Redis no longer has that batch",
                hint: "submit the lines again that are still wanted")
        }
        self.init(skippedOf: found, queue: queue)
    }

    /// * `lost`: as of ``FailureReader``.
    package init(
        skippedOf status: BatchStatus, queue: PrefetchQueue,
        lost: @escaping @Sendable ([ClosedRange<Int>]) -> Void = { _ in }
    ) {
        self.init(.skipped(FailureReader(queue: queue, status: status, lost: lost)), total: status.counts.skipped)
    }

    /// About how many a list has that was not read to its end; 0: unknown.
    var estimate: Int { if case .stream(let stream) = source { stream.estimate ?? 0 } else { 0 } }

    /// The index from which on nothing is queued yet.
    /// * `index`: of what is queued next.
    func end(at index: Int) -> Int {
        if case .stream(let stream) = source { stream.limits.end(at: index) } else { .max }
    }

    /// Which file a list is; empty of what is no file of lines.
    var mark: String { if case .stream(let stream) = source { stream.list.mark?.text ?? "" } else { "" } }

    /// SHA-256 of the list up to a byte that ``feed(from:_:waiting:)`` has given.
    func digest(upTo end: Int) -> String? {
        if case .stream(let stream) = source { stream.digest(upTo: end)?.hash } else { nil }
    }

    /// How much of the list was read, and its SHA-256.
    var read: (length: Int, hash: String) {
        switch source {
        case .list(let list): (list.bytes, list.hash)
        case .stream(let stream): stream.digest() ?? (0, "")
        case .lines, .skipped: (0, "")
        }
    }

    /// Entries of each file, if it was read to its end and has several.
    var files: [Int] {
        guard case .stream(let stream) = source, case let parts = stream.reading.parts, parts.count > 1 else {
            return []
        }
        return parts.map(\.total)
    }

    /// The batch is sealed.
    func finish() { if case .stream(let stream) = source { stream.finish() } }

    /// Reads the lines of a list; nil of a retry.
    /// - Throws: `notFound`, `unreadableList`.
    func reader() throws(PrefetchError) -> EntryReader? {
        switch source {
        case .list(let list): try EntryReader(path: list.path)
        case .stream(let stream): stream.entries()
        case .lines(let found, _): try EntryReader(path: found.path, pieces: found.pieces)
        case .skipped: nil
        }
    }

    /// Calls `body` with each entry from index `first` on, until it returns false.
    /// - Throws: errors of `body`; `unreadableList`, `redisUnavailable` if the entries cannot be read (any more).
    package func forEach(
        from first: Int = 0, _ body: (PrefetchJob.Entry) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        try await read(from: first, copies: false) { entry, _ async throws(PrefetchError) in try await body(entry) }
    }

    /// Calls `body` with the entries that are there without waiting for more of a pipe, until it returns false.
    /// - Throws: as ``forEach(from:_:)``.
    package func forEachPresent(
        _ body: (PrefetchJob.Entry) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        try await read(from: 0, copies: false) { entry, _ async throws(PrefetchError) in
            try await body(entry)
        } waiting: { () async throws(PrefetchError) in
            false
        }
    }

    /// Calls `body` with each entry and the byte of the list behind it, as ``forEach(from:_:)``; a list that is read for the first time
    /// is copied.
    /// * `waiting`: see ``ListStream/forEach(from:copies:_:waiting:)``.
    func feed(
        from first: Int, _ body: (PrefetchJob.Entry, Int) async throws(PrefetchError) -> Bool,
        waiting: () async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        try await read(from: first, copies: true, body, waiting: waiting)
    }

    private func read(
        from first: Int, copies: Bool, _ body: (PrefetchJob.Entry, Int) async throws(PrefetchError) -> Bool,
        waiting: () async throws(PrefetchError) -> Bool = { () async throws(PrefetchError) in true }
    ) async throws(PrefetchError) {
        switch source {
        case .list(let list):
            try await list.forEach(from: first) { entry async throws(PrefetchError) in try await body(entry, 0) }
        case .stream(let stream): try await stream.forEach(from: first, copies: copies, body, waiting: waiting)
        case .lines(let found, let most):
            var left = most - first
            guard left > 0 else { return }
            try await EntryReader(path: found.path, pieces: found.pieces).forEach(from: first) {
                entry async throws(PrefetchError) in
                left -= 1
                return try await body(entry, 0) && left > 0
            }
        case .skipped(let reader):
            var index = 0
            try await reader.forEach { failure async throws(PrefetchError) in
                index += 1
                guard index > first else { return true }
                return try await body(failure.entry, 0)
            }
        }
    }
}

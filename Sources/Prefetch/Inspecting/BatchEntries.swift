internal import Redis
internal import WebImage

/// The entries of a batch in index order: the lines of its list; for a retry, the skipped lines of the batch it retries.
package struct BatchEntries: Sendable {
    private enum Source: Sendable {
        /// * `most`: entries of an open batch so far, whose file may have more.
        case list(URLList, most: Int?)
        case pipe(ListPipe)
        case skipped(FailureReader)
    }

    private let source: Source
    /// Nil of a pipe.
    package let total: Int?

    package init(_ list: URLList) { self.init(list, most: nil) }

    private init(_ list: URLList, most: Int?) {
        source = .list(list, most: most)
        total = min(list.total, most ?? .max)
    }

    package init(_ pipe: ListPipe) {
        source = .pipe(pipe)
        total = nil
    }

    /// Of the list; empty of a pipe that has not ended, and of a retry.
    var hash: String {
        switch source {
        case .list(let list, _): list.hash
        case .pipe(let pipe): pipe.hash
        case .skipped: ""
        }
    }

    /// The entries of a batch in Redis; of an open one, as far as its status includes them.
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
                    .notFound, "\(status.id) retries \(parent), and Redis no longer has that batch",
                    hint: "submit the lines again that are still wanted")
            }
            self.init(skippedOf: found, queue: queue, listPath: listPath)
            return
        }
        self.init(try Self.list(of: status, listPath), most: status.isOpen ? status.total : nil)
    }

    /// The list that a batch was made of: where it was, or the copy that was kept of it.
    private static func list(of status: BatchStatus, _ listPath: String?) throws(PrefetchError) -> URLList {
        let found: Result<URLList, PrefetchError>
        do throws(PrefetchError) { found = .success(try URLList(path: listPath ?? status.listPath)) } catch {
            found = .failure(error)
        }
        if case .success(let list) = found, status.isOpen || list.hash == status.listHash { return list }
        if listPath == nil, let file = ListCopy(path: status.listCopy)?.unpacked(), let list = try? URLList(path: file),
            list.hash == status.listHash
        {
            return list
        }
        let hint = "give the file it was submitted from: --list FILE"
        switch found {
        case .success(let list):
            throw PrefetchError(
                .unreadableList, "\(list.path) is not the list of \(status.id) any more, and there is no copy of it",
                hint: hint)
        // The original path does not help: the hint asks for the current one.
        case .failure(let error):
            throw PrefetchError(
                error.kind, "the list of \(status.id) cannot be used: \(error.message)", hint: hint)
        }
    }

    package init(skippedOf status: BatchStatus, queue: PrefetchQueue, listPath: String? = nil) {
        source = .skipped(FailureReader(queue: queue, status: status, listPath: listPath))
        total = status.counts.skipped
    }

    /// Calls `body` with each entry from index `first` on, until it returns false.
    /// * `waiting`: see ``ListPipe/forEach(from:_:waiting:)``.
    /// - Throws: errors of `body`; `unreadableList`, `redisUnavailable` if the entries cannot be read (any more).
    package func forEach(
        from first: Int = 0, _ body: (PrefetchJob.Entry) async throws(PrefetchError) -> Bool,
        waiting: () async throws(PrefetchError) -> Bool = { () async throws(PrefetchError) in true }
    ) async throws(PrefetchError) {
        switch source {
        case .list(let list, nil): try await list.forEach(from: first, copy: list.copy, body)
        case .list(let list, let most?):
            var left = most - first
            try await list.forEach(from: first) { entry async throws(PrefetchError) in
                left -= 1
                guard left >= 0 else { return false }
                return try await body(entry)
            }
        case .pipe(let pipe): try await pipe.forEach(from: first, body, waiting: waiting)
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

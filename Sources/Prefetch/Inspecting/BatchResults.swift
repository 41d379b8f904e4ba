internal import WebImage

/// The newest result of each line over a batch and its retries, in the order of the list. In constant memory: a retry has the skipped lines
/// of the batch before it in their order, so one pass keeps a position in each of them.
package struct BatchResults: Sendable {
    package struct Line: Sendable, Equatable {
        /// From 1.
        package var line: Int
        /// Among the entries of the list, from 0.
        package var index = 0
        package var url: String
        /// Newest outcome; nil while open.
        package var outcome: PrefetchOutcome?
        /// HTTP status and tries of a skipped line.
        package var failure: FailureRecord?
        /// The batch of the chain that has this result; 0 is the first.
        package var batch = 0
        /// When a skipped line ended, ms since 1970; nil if unknown.
        package var ended: Int?
        /// The cache of the image, as reported by its worker; nil without one, or if not reported.
        package var cache: BatchCache?
        /// The other columns of the list.
        package var columns: [String: ColumnValue]?
        /// Its own settings, of which its key may be made.
        package var settings: URLSettings?

        package init(line: Int, url: String, outcome: PrefetchOutcome?) {
            self.line = line
            self.url = url
            self.outcome = outcome
        }
    }

    private let chain: BatchChain
    private let queue: PrefetchQueue
    private let entries: BatchEntries

    /// Lines that were changed since they were queued: they are left out.
    package var lost: [ClosedRange<Int>] { entries.lost }

    /// - Throws: `notFound`, `unreadableList` if the list is missing or has changed.
    package init(_ chain: BatchChain, queue: PrefetchQueue) async throws(PrefetchError) {
        self.chain = chain
        self.queue = queue
        entries = try await BatchEntries(of: chain.root, queue: queue)
    }

    /// The columns besides the URL, sorted by name, and whether all their values are numbers or truth values. Reads the whole list.
    package func columns() async throws(PrefetchError) -> [TypedColumn] {
        var names: Set<ByteText> = []
        var kinds: [ByteText: TypedColumn.Kind] = [:]
        try await entries.forEach { entry async throws(PrefetchError) in
            for (name, value) in entry.columns ?? [:] {
                let name = ByteText(name)
                names.insert(name)
                guard let kind = TypedColumn.Kind(value) else { continue }
                kinds[name] = kinds[name]?.joined(with: kind) ?? kind
            }
            return true
        }
        return names.sorted().map { TypedColumn($0.text, kinds[$0] ?? .text) }
    }

    /// Calls `body` with each line until it returns false.
    /// - Throws: errors of `body`; `unreadableList`, `redisUnavailable` if it cannot be read (any more).
    package func forEach(_ body: (Line) async throws(PrefetchError) -> Bool) async throws(PrefetchError) {
        var readers = chain.batches.map { OutcomeReader(queue: queue, status: $0, [.caches, .records]) }
        // Of each batch the index of its next entry.
        var places = [Int](repeating: 0, count: readers.count)
        try await entries.forEach { entry async throws(PrefetchError) in
            var line = Line(line: entry.line, url: entry.url, outcome: nil)
            for index in readers.indices {
                let result = try await readers[index].result(at: places[index])
                places[index] += 1
                (line.outcome, line.failure, line.ended) = (result.outcome, result.failure, result.ended)
                (line.cache, line.batch) = (result.cache, index)
                guard line.outcome?.isSkipped == true else { break }
            }
            line.index = places[0] - 1
            (line.columns, line.settings) = (entry.columns, entry.settings)
            return entry.isLost ? true : try await body(line)
        }
    }
}

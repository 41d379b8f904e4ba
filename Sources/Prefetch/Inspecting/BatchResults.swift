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
    let entries: BatchEntries

    /// Lines that were changed since they were queued: they are left out.
    package var lost: [ClosedRange<Int>] { entries.lost }

    /// * `list`: the list of a batch that is being fed.
    /// - Throws: `notFound`, `unreadableList` if the list is missing or has changed.
    package init(_ chain: BatchChain, queue: PrefetchQueue, list: ListStream? = nil) async throws(PrefetchError) {
        (self.chain, self.queue) = (chain, queue)
        if let list {
            entries = BatchEntries(list)
        } else {
            entries = try await BatchEntries(of: chain.root, queue: queue)
        }
    }

    /// The columns besides the URL, sorted by name, and whether all their values are numbers or truth values. Reads the whole list.
    package func columns() async throws(PrefetchError) -> [TypedColumn] {
        var columns = ListColumns()
        try await entries.forEach { entry async throws(PrefetchError) in
            columns.add(entry)
            return true
        }
        return columns.all
    }

    /// The first line, or that of an index if the batch has no retries.
    func cursor(at index: Int = 0) -> ResultCursor { ResultCursor(chain, queue: queue, at: index) }

    /// Calls `body` with each line until it returns false.
    /// - Throws: errors of `body`; `unreadableList`, `redisUnavailable` if it cannot be read (any more).
    package func forEach(_ body: (Line) async throws(PrefetchError) -> Bool) async throws(PrefetchError) {
        var cursor = cursor()
        try await entries.forEach { entry async throws(PrefetchError) in
            let line = try await cursor.next(entry)
            return entry.isLost ? true : try await body(line)
        }
    }
}

/// A place in the results of a batch and its retries.
struct ResultCursor {
    private var readers: [OutcomeReader]
    /// Of each batch the index of its next entry.
    private var places: [Int]

    fileprivate init(_ chain: BatchChain, queue: PrefetchQueue, at index: Int) {
        readers = chain.batches.map { OutcomeReader(queue: queue, status: $0, [.caches, .records]) }
        places = [Int](repeating: 0, count: readers.count)
        places[0] = index
    }

    /// The result of the next entry.
    mutating func next(_ entry: PrefetchJob.Entry) async throws(PrefetchError) -> BatchResults.Line {
        let (result, batch) = try await next()
        var line = BatchResults.Line(line: entry.line, url: entry.url, outcome: result.outcome)
        (line.failure, line.ended, line.cache) = (result.failure, result.ended, result.cache)
        (line.batch, line.index) = (batch, places[0] - 1)
        (line.columns, line.settings) = (entry.columns, entry.settings)
        return line
    }

    /// Passes so many entries; returns how many of them have an image.
    mutating func pass(_ count: Int) async throws(PrefetchError) -> Int {
        var images = 0
        for _ in 0..<count {
            if case let outcome? = try await next().result.outcome, !outcome.isSkipped { images += 1 }
        }
        return images
    }

    private mutating func next() async throws(PrefetchError) -> (result: OutcomeReader.Result, batch: Int) {
        var newest = (result: OutcomeReader.Result(), batch: 0)
        for index in readers.indices {
            newest = (try await readers[index].result(at: places[index]), index)
            places[index] += 1
            guard newest.result.isSkipped else { break }
        }
        return newest
    }
}

/// The columns of lines besides the URL.
struct ListColumns {
    private var names: Set<ByteText> = []
    private var kinds: [ByteText: TypedColumn.Kind] = [:]

    mutating func add(_ entry: PrefetchJob.Entry) {
        for (name, value) in entry.columns ?? [:] {
            let name = ByteText(name)
            names.insert(name)
            guard let kind = TypedColumn.Kind(value) else { continue }
            kinds[name] = kinds[name]?.joined(with: kind) ?? kind
        }
    }

    /// Sorted by name; of each whether all values are numbers or truth values.
    var all: [TypedColumn] { names.sorted().map { TypedColumn($0.text, kinds[$0] ?? .text) } }
}

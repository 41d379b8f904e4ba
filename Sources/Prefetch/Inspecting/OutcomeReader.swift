internal import Redis
internal import WebImage

/// Reads what became of the URLs of a batch, by ascending index from any place on, a block at a time.
struct OutcomeReader {
    /// What is read besides outcomes.
    struct Parts: OptionSet {
        let rawValue: Int

        /// In which cache an image is.
        static let caches = Parts(rawValue: 1)
        /// The records of failures.
        static let records = Parts(rawValue: 2)
        /// The details of failures, as far as they are kept.
        static let details = Parts(rawValue: 4)
    }

    struct Result {
        /// Nil if open.
        var outcome: PrefetchOutcome?
        var failure: FailureRecord?
        var ended: Int?
        var cache: BatchCache?
        var detail: FailureDetail?

        var isSkipped: Bool { outcome?.isSkipped == true }
    }

    private static let step = 16_384

    private let queue: PrefetchQueue
    private let status: BatchStatus
    private let parts: Parts
    private let reader: FailureRecords
    private var range = 0..<0
    private var outcomes: [UInt8] = []
    private var caches = BatchCaches()
    /// Empty if all images are in the first cache.
    private var places: [UInt8] = []
    private var records: [Int: FailureRecord] = [:]
    private var details: [Int: FailureDetail] = [:]

    init(queue: PrefetchQueue, status: BatchStatus, _ parts: Parts) {
        (self.queue, self.status, self.parts) = (queue, status, parts)
        reader = FailureRecords(queue: queue, status: status)
    }

    /// Of any index: the list may be longer than the batch.
    mutating func result(at index: Int) async throws(PrefetchError) -> Result {
        if !range.contains(index) { try await read(index) }
        return result(index)
    }

    /// The skipped URLs of the block with an index, from that on, and the first index behind the block.
    mutating func skipped(
        from index: Int
    ) async throws(PrefetchError) -> (
        found: [(index: Int, result: Result)], end: Int
    ) {
        try await read(index)
        let found = (index..<range.upperBound).filter { Self.isSkipped(outcomes[$0 - range.lowerBound], status) }
        return (found.map { ($0, result($0)) }, range.upperBound)
    }

    private static func isSkipped(_ code: UInt8, _ status: BatchStatus) -> Bool {
        code == 0 ? status.state == .cancelled : PrefetchOutcome(code: code)?.isSkipped == true
    }

    private func result(_ index: Int) -> Result {
        let place = index - range.lowerBound
        let code = outcomes[place]
        if code == 0, status.state != .cancelled { return Result() }
        let outcome = code == 0 ? .cancelled : PrefetchOutcome(code: code)
        let record = records[index]
        var detail = details[index]
        detail?.ended = reader.time(of: record)
        return Result(
            outcome: outcome, failure: record, ended: reader.time(of: record),
            cache: outcome?.isSkipped == false && parts.contains(.caches)
                ? caches[places.isEmpty ? 0 : places[place]] : nil, detail: detail)
    }

    private mutating func read(_ index: Int) async throws(PrefetchError) {
        let start = index / Self.step * Self.step
        range = start..<start + Self.step
        do throws(RedisError) {
            outcomes = try await queue.results.outcomes(of: status.id, range: range)
            if parts.contains(.caches) {
                caches = try await queue.results.caches(of: status.id)
                places = caches.count > 1 ? try await queue.results.places(of: status.id, range: range) : []
            }
            (records, details) = ([:], [:])
            let skipped = zip(range, outcomes).filter { Self.isSkipped($1, status) }.map(\.0)
            guard !skipped.isEmpty else { return }
            if parts.contains(.records) {
                let open = skipped.filter { outcomes[$0 - start] == 0 }
                records = try await reader.read(range, open: open)
            }
            if parts.contains(.details) { details = try await queue.results.details(of: status.id, indices: skipped) }
        } catch {
            throw PrefetchError(error)
        }
    }
}

public import WebImage
internal import Redis

/// A batch as Redis has it at one moment.
public struct BatchStatus: Sendable, Equatable {
    /// What becomes of a batch.
    public enum State: String, Sendable {
        /// Workers may have its jobs.
        case running
        /// Every URL ended.
        case done
        /// Ended by hand; its open URLs read as `cancelled`.
        case cancelled
    }

    /// The name that commands take.
    public var id: String
    /// What became of it.
    public var state: State
    /// URLs of the list.
    public var total: Int
    /// URLs pushed so far.
    public var pushed: Int
    /// Whether every URL is pushed.
    public var isSealed: Bool
    /// How the URLs ended; those of a cancelled batch that were open count as cancelled.
    public var counts: PrefetchCounts
    /// Milliseconds since 1970: made, fed last, last outcome, ended (0 = not yet).
    public var created: Int, fed: Int, last: Int, ended: Int
    /// Where the list was read.
    public var listPath: String
    /// Hex SHA-256 of the list.
    public var listHash: String
    /// The batch whose skipped URLs this one takes up again.
    public var retryOf: String?
    /// The batch that took up this one's skipped URLs; nil also where that is gone.
    public var retriedBy: String?
    /// The slot it has: at most one running batch of a queue has a slot.
    public var slot: String?
    /// What it asks of workers.
    public var options: BatchOptions
    /// The most entries of skipped URLs it keeps.
    public var keepDetails: Int
    /// The reading's time in Redis, ms since 1970.
    public var at: Int

    /// SDWebImage's `didFinishWithTotalCount:skippedCount:`: total less skipped, and skipped.
    public var didFinish: (totalCount: Int, skippedCount: Int) { (total - counts.skipped, counts.skipped) }

    /// Seconds from the first push to the end, or to now.
    public var elapsed: Double { max(0, Double((ended > 0 ? ended : at) - created) / 1000) }

    /// Whether the list is not complete in Redis and nobody has fed it for 5 s.
    public var waitsForItsList: Bool { state == .running && !isSealed && at - fed > 5_000 }

    /// A batch made up of what is given; for views and their tests.
    package init(
        id: String, state: State, total: Int, counts: PrefetchCounts, created: Int, ended: Int, at: Int
    ) {
        (self.id, self.state, self.total, self.counts) = (id, state, total, counts)
        (self.created, self.ended, self.at) = (created, ended, at)
        (pushed, isSealed, fed, last) = (total, true, created, ended)
        (listPath, listHash, options, keepDetails) = ("", "", BatchOptions(), 100_000)
    }

    /// Reads the hash of a batch; nil where it is none.
    init?(id: String, fields: [String: RedisValue], at: Int) {
        guard let state = fields["state"]?.string.flatMap(State.init(rawValue:)) else { return nil }
        func number(_ name: String) -> Int { fields[name]?.int ?? 0 }
        self.id = id
        self.state = state
        self.at = at
        pushed = number("pushed")
        isSealed = number("sealed") == 1
        total = fields["total"]?.int ?? pushed
        counts = PrefetchCounts()
        for outcome in PrefetchOutcome.allCases { counts[outcome] = number("o\(outcome.rawValue)") }
        counts.bytes = number("bytes")
        if state == .cancelled { counts[.cancelled] += max(0, total - counts.finished) }
        created = number("created")
        fed = number("fed")
        last = number("last")
        ended = number("ended")
        listPath = fields["list"]?.string ?? ""
        listHash = fields["hash"]?.string ?? ""
        func name(_ field: String) -> String? { fields[field]?.string.flatMap { $0.isEmpty ? nil : $0 } }
        retryOf = name("retry_of")
        retriedBy = name("retried_by")
        slot = name("slot")
        options = BatchOptions(encoded: fields["options"]?.string ?? "{}")
        keepDetails = fields["details"]?.int ?? 100_000
    }

    /// Whether two readings say the same of the same batch; the times of the readings do not count.
    public static func == (lhs: BatchStatus, rhs: BatchStatus) -> Bool {
        lhs.id == rhs.id && lhs.state == rhs.state && lhs.total == rhs.total && lhs.pushed == rhs.pushed
            && lhs.isSealed == rhs.isSealed && lhs.counts == rhs.counts
    }
}

internal import Redis

/// A batch as Redis has it at one moment.
public struct BatchStatus: Sendable, Equatable {
    /// What becomes of a batch.
    public enum State: String, Sendable {
        /// Workers may have its jobs.
        case running
        /// Every URL ended.
        case done
        /// Ended before its end; its open URLs read as `cancelled`.
        case cancelled
    }

    /// Who ended a batch that was cancelled.
    public enum Ending: String, Sendable {
        /// Somebody, with `cancel` or a token.
        case hand
        /// A later batch that took its slot.
        case slot
        /// Its deadline.
        case deadline
        /// As many of its URLs ended as were to be waited for.
        case finishAt = "finish-at"
    }

    /// The name that commands take.
    public var id: String
    /// What became of it.
    public var state: State
    /// Who ended it; nil where nobody did before its end.
    public var endedBy: Ending?
    /// URLs of the list; of an open batch those of the lists it has so far.
    public var total: Int
    /// URLs pushed so far.
    public var pushed: Int
    /// Whether every URL is pushed.
    public var isSealed: Bool
    /// Whether more lists may be added to it.
    public var isOpen: Bool
    /// Whether it was submitted open: it may have any number of lists.
    public var hasLists: Bool
    /// When it is ended at the latest, ms since 1970; 0 = never.
    public var deadline: Int
    /// How many URLs have to end until it is ended: a number, or a share as `99.9%`; nil: all.
    public var finishAt: String?
    /// Whether nothing more of it begins until it is resumed.
    public var isPaused: Bool
    /// Whether the whole queue is paused, this batch with it.
    public var isQueuePaused: Bool
    /// How the URLs ended; those of a cancelled batch that were open count as cancelled.
    public var counts: PrefetchCounts
    /// What its images and their transfers were like, as workers told it, a second behind the counts.
    package var fetches = FetchTally()
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
    /// Whose turn it has among the batches of its queue.
    public var priority: PrefetchPriority
    /// What it asks of workers.
    public var options: BatchOptions
    /// The most entries of skipped URLs it keeps.
    public var keepDetails: Int
    /// What tells it from other batches that had its name, or will have it.
    package var nonce = ""
    /// When its feeder said last that Redis takes no jobs, by the same clock; 0 = never.
    var full = 0
    /// The reading's time in Redis, ms since 1970.
    public var at: Int

    /// The most URLs a batch can have: each has its byte in one string of Redis, of 512 MiB at most.
    package static let mostURLs = 1 << 29

    /// This very batch, whoever has its name later.
    package var identity: BatchIdentity { BatchIdentity(id: id, nonce: nonce) }

    /// SDWebImage's `didFinishWithTotalCount:skippedCount:`: total less skipped, and skipped.
    public var didFinish: (totalCount: Int, skippedCount: Int) { (total - counts.skipped, counts.skipped) }

    /// Seconds from the first push to the end, or to now.
    public var elapsed: Double { max(0, Double((ended > 0 ? ended : at) - created) / 1000) }

    /// Whether a list is not complete in Redis and nobody has fed it for 5 s.
    public var waitsForItsList: Bool {
        state == .running && !isSealed && at - fed > 5_000 && (!hasLists || pushed < total)
    }

    /// Whether who feeds its list is there, and waits because Redis has reached its maxmemory.
    public var waitsForMemory: Bool {
        state == .running && !isSealed && full > 0 && full >= fed && at - fed <= 5_000
    }

    /// Whether it runs, and should not any more.
    var isPastDeadline: Bool { state == .running && deadline > 0 && deadline <= at }

    /// Whether nothing of it begins for now, because somebody said so.
    public var isHeld: Bool { state == .running && (isPaused || isQueuePaused) }

    /// Becomes a later reading of the same batch, which had no look at the batches before and after it.
    package mutating func take(_ later: BatchStatus) {
        let (before, after) = (retryOf, retriedBy)
        self = later
        (retryOf, retriedBy) = (before, after)
    }

    /// A batch made up of what is given; for views and their tests.
    package init(
        id: String, state: State, total: Int, counts: PrefetchCounts, created: Int, ended: Int, at: Int
    ) {
        (self.id, self.state, self.total, self.counts) = (id, state, total, counts)
        (self.created, self.ended, self.at) = (created, ended, at)
        (pushed, isSealed, fed, last) = (total, true, created, ended)
        (listPath, listHash, options, keepDetails) = ("", "", BatchOptions(), 100_000)
        (isOpen, hasLists, deadline, isPaused, isQueuePaused, priority) = (false, false, 0, false, false, .normal)
    }

    /// Reads the hash of a batch; nil where it is none.
    init?(id: String, fields: [String: RedisValue], at: Int, isQueuePaused: Bool = false) {
        guard let state = fields["state"]?.string.flatMap(State.init(rawValue:)) else { return nil }
        func number(_ name: String) -> Int { fields[name]?.count ?? 0 }
        self.id = id
        self.state = state
        self.at = at
        // No URL is behind the longest string of outcomes.
        pushed = min(number("pushed"), Self.mostURLs)
        isSealed = number("sealed") == 1
        isPaused = state == .running && number("paused") == 1
        self.isQueuePaused = isQueuePaused
        total = min(fields["total"]?.count ?? pushed, Self.mostURLs)
        hasLists = number("open") == 1
        isOpen = hasLists && state == .running && !isSealed && number("closing") == 0
        deadline = number("deadline")
        finishAt = fields["finish_at"]?.string
        endedBy = state == .cancelled ? fields["ended_by"]?.string.flatMap(Ending.init(rawValue:)) : nil
        counts = PrefetchCounts()
        for code in 1...PrefetchOutcome.unknown.rawValue {
            if let outcome = PrefetchOutcome(code: code) { counts[outcome] += number("o\(code)") }
        }
        counts.bytes = number("bytes")
        fetches = FetchTally(fields: fields)
        if state == .cancelled { counts[.cancelled] += max(0, total - counts.finished) }
        created = number("created")
        fed = number("fed")
        full = number("full")
        last = number("last")
        ended = number("ended")
        listPath = fields["list"]?.string ?? ""
        listHash = fields["hash"]?.string ?? ""
        func name(_ field: String) -> String? { fields[field]?.string.flatMap { $0.isEmpty ? nil : $0 } }
        retryOf = name("retry_of")
        retriedBy = name("retried_by")
        slot = name("slot")
        priority = fields["priority"]?.string.flatMap(PrefetchPriority.init(rawValue:)) ?? .normal
        options = BatchOptions(encoded: fields["options"]?.string ?? "{}")
        keepDetails = fields["details"]?.count ?? 100_000
        nonce = fields["nonce"]?.string ?? ""
    }

    /// Whether two readings say the same of the same batch; the times of the readings do not count.
    public static func == (lhs: BatchStatus, rhs: BatchStatus) -> Bool {
        lhs.id == rhs.id && lhs.state == rhs.state && lhs.total == rhs.total && lhs.pushed == rhs.pushed
            && lhs.isSealed == rhs.isSealed && lhs.isOpen == rhs.isOpen && lhs.isPaused == rhs.isPaused
            && lhs.isQueuePaused == rhs.isQueuePaused && lhs.counts == rhs.counts
    }
}

internal import Redis

/// A batch in Redis at one moment.
public struct BatchStatus: Sendable, Equatable {
    /// The state of a batch.
    public enum State: String, Sendable, CaseIterable {
        /// Workers may claim its jobs.
        case running
        /// Every URL has ended.
        case done
        /// Ended early; its open URLs read as `cancelled`.
        case cancelled
    }

    /// Why a batch was cancelled.
    public enum Ending: String, Sendable, CaseIterable {
        /// By a user, with `cancel` or a token.
        case hand
        /// A later batch took its slot.
        case slot
        /// Its deadline passed.
        case deadline
        /// As many URLs as ``finishAt`` demands have ended.
        case finishAt = "finish-at"
        /// More URLs failed than ``maxFailures`` allows.
        case maxFailures = "max-failures"
    }

    /// The id that commands take.
    public var id: String
    /// Its state.
    public var state: State
    /// Why it was cancelled; nil if it was not.
    public var endedBy: Ending?
    /// URLs of the list; of an open batch those that were pushed so far.
    public var total: Int
    /// About how many URLs the list of an open batch has, by what was read of it; 0: unknown, as of a pipe, or ``total`` is exact.
    public var estimate = 0
    /// URLs pushed so far.
    public var pushed: Int
    /// Whether every URL is pushed.
    public var isSealed: Bool
    /// Whether its list was not read to its end: its total grows.
    public var isOpen: Bool
    /// When it is ended at the latest, ms since 1970; 0 = never.
    public var deadline: Int
    /// Whether none of its URLs start until it is resumed.
    public var isPaused: Bool
    /// Whether the whole queue is paused, and this batch with it.
    public var isQueuePaused: Bool
    /// Why it cannot end although it is running, as far as a worker has noticed: one of its keys has a wrong type, or Redis lost some of its
    /// jobs. Nil if it can.
    public var broken: String?
    /// How the URLs ended; open URLs of a cancelled batch count as cancelled.
    public var counts: PrefetchCounts
    /// Image and transfer figures reported by workers, a second behind the counts.
    package var fetches = FetchTally()
    /// What held the workers back that had its URLs.
    package var limits = LimitTimes()
    /// Where it was some seconds ago, the older one first.
    package var marks: [ProgressMark] = []
    /// Milliseconds since 1970: created, last fed, last outcome, ended (0 = not yet).
    public var created: Int, fed: Int, last: Int, ended: Int
    /// The path the list was read from.
    public var listPath: String
    /// What the list was made of, paths of files or names of pipes; none where it was read as it is.
    package var sources: [String] = []
    /// Entries of each of its files, if it has several and was read to its end.
    package var listFiles: [Int] = []
    /// Hex SHA-256 of the first ``listBytes`` bytes of the list.
    public var listHash: String
    /// Bytes of the list up to its last URL that was pushed; all of them once it was read to its end.
    package var listBytes = 0
    /// Hex SHA-256 of the beginning of the list.
    package var listHead = ""
    /// Which file the list was, and when it was written last.
    package var listMark = ""
    /// The folder in which there is a copy of it; empty: none was made.
    package var listCopies = ""
    /// What its run has written; nil if it writes no shards.
    package var shards: WrittenShards?
    /// The batch whose skipped URLs this one retries.
    public var retryOf: String?
    /// The batch that retries this one's skipped URLs; nil also if that is gone.
    public var retriedBy: String?
    /// What it was given; its name is ``id``.
    package var settings = BatchSettings()
    /// The most details of skipped URLs it keeps.
    public var keepDetails: Int
    package var nonce = ""
    /// How often its settings were changed.
    package var changes = 0
    /// URLs before this index are not requested any more.
    package var leftBefore = 0
    /// When its feeder last reported that Redis takes no jobs, by the same clock; 0 = never.
    var full = 0
    /// Time of the reading in Redis, ms since 1970.
    public var at: Int

    /// The most URLs of a batch: each has one byte in a Redis string, which holds at most 512 MiB.
    package static let maxURLs = 1 << 29

    package var identity: BatchIdentity { BatchIdentity(id: id, nonce: nonce) }

    /// Options for workers.
    public var options: BatchOptions {
        get { settings.options }
        set { settings.options = newValue }
    }

    /// Its priority among the batches of its queue.
    public var priority: PrefetchPriority {
        get { settings.turn.priority }
        set { settings.turn.priority = newValue }
    }

    /// Its slot: at most one running batch of a queue has a slot.
    public var slot: String? { settings.turn.slot }

    /// How many URLs have to end before it is ended: a number, or a share such as `99.9%`; nil: all.
    public var finishAt: String? { settings.turn.finishAt?.description }

    /// How many URLs may fail before the batch is cancelled: a number, or a share of the ended URLs such as `5%`; nil = any number. What its
    /// own filters do not take is no failure.
    public var maxFailures: String? { settings.turn.maxFailures?.description }

    /// SDWebImage's `didFinishWithTotalCount:skippedCount:`: total less skipped, and skipped.
    public var didFinish: (totalCount: Int, skippedCount: Int) { (total - counts.skipped, counts.skipped) }

    /// Seconds from the creation to the end, or to now.
    public var elapsed: Double { max(0, Double((ended > 0 ? ended : at) - created) / 1000) }

    /// Whether its list is incomplete in Redis and has not been fed for 5 s.
    public var isWaitingForList: Bool {
        state == .running && !isSealed && at - fed > 5_000
    }

    /// Whether its feeder is alive but waits because Redis has reached maxmemory.
    public var isWaitingForMemory: Bool {
        state == .running && !isSealed && full > 0 && full >= fed && at - fed <= 5_000
    }

    var isPastDeadline: Bool { state == .running && deadline > 0 && deadline <= at }

    /// Whether it is running but paused, itself or with the queue.
    public var isEffectivelyPaused: Bool { state == .running && (isPaused || isQueuePaused) }

    /// Takes over a later reading of the same batch that did not read its retry links.
    package mutating func take(_ later: BatchStatus) {
        let (before, after) = (retryOf, retriedBy)
        self = later
        (retryOf, retriedBy) = (before, after)
    }

    /// For views and their tests.
    package init(
        id: String, state: State, total: Int, counts: PrefetchCounts, created: Int, ended: Int, at: Int
    ) {
        (self.id, self.state, self.total, self.counts) = (id, state, total, counts)
        (self.created, self.ended, self.at) = (created, ended, at)
        (pushed, isSealed, fed, last) = (total, true, created, ended)
        (listPath, listHash, keepDetails) = ("", "", 100_000)
        (isOpen, deadline, isPaused, isQueuePaused) = (false, 0, false, false)
    }

    /// Nil if the fields are not a batch's.
    init?(id: String, fields: [String: RedisValue], at: Int, isQueuePaused: Bool = false) {
        guard let state = fields["state"]?.string.flatMap(State.init(rawValue:)) else { return nil }
        func number(_ name: String) -> Int { fields[name]?.count ?? 0 }
        self.id = id
        self.state = state
        self.at = at
        // No URL is beyond the longest string of outcomes.
        pushed = min(number("pushed"), Self.maxURLs)
        isSealed = number("sealed") == 1
        isPaused = state == .running && number("paused") == 1
        self.isQueuePaused = isQueuePaused
        broken = state == .running ? fields["broken"]?.string : nil
        total = min(fields["total"]?.count ?? pushed, Self.maxURLs)
        isOpen = state == .running && !isSealed && number("open") == 1
        estimate = isOpen ? min(number("estimate"), Self.maxURLs) : 0
        deadline = number("deadline")
        endedBy = state == .cancelled ? fields["ended_by"]?.string.flatMap(Ending.init(rawValue:)) : nil
        counts = PrefetchCounts()
        for code in 1...PrefetchOutcome.unknown.rawValue {
            if let outcome = PrefetchOutcome(code: code) { counts[outcome] += number("o\(code)") }
        }
        counts.bytes = number("bytes")
        marks = ProgressMark.marks(fields["pace"]?.string ?? "")
        fetches = FetchTally(fields: fields)
        limits = LimitTimes(fields: fields)
        if state == .cancelled { counts[.cancelled] += max(0, total - counts.finished) }
        created = number("created")
        fed = number("fed")
        full = number("full")
        last = number("last")
        ended = number("ended")
        listPath = fields["list"]?.string ?? ""
        listHash = fields["hash"]?.string ?? ""
        listBytes = number("length")
        (listHead, listMark) = (fields["head"]?.string ?? "", fields["mark"]?.string ?? "")
        listCopies = fields["copies"]?.string ?? ""
        listFiles = (fields["files"]?.string ?? "").split(separator: ",").compactMap { Int(plausible: $0) }
            .map { max(0, $0) }
        sources = (fields["sources"]?.string ?? "").split(separator: "\0").map(String.init)
        shards = fields["shards"].flatMap { WrittenShards($0.string ?? "") }
        func name(_ field: String) -> String? { fields[field]?.string.flatMap { $0.isEmpty ? nil : $0 } }
        retryOf = name("retry_of")
        retriedBy = name("retried_by")
        settings = BatchSettings(fields: fields)
        keepDetails = fields["details"]?.count ?? 100_000
        nonce = fields["nonce"]?.string ?? ""
        (changes, leftBefore) = (number("changes"), number("left_before"))
    }

    /// Whether two readings of a batch agree; the times of the readings are ignored.
    public static func == (lhs: BatchStatus, rhs: BatchStatus) -> Bool {
        lhs.id == rhs.id && lhs.state == rhs.state && lhs.total == rhs.total && lhs.pushed == rhs.pushed
            && lhs.isSealed == rhs.isSealed && lhs.isOpen == rhs.isOpen && lhs.isPaused == rhs.isPaused
            && lhs.isQueuePaused == rhs.isQueuePaused && lhs.counts == rhs.counts
    }
}

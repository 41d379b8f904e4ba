internal import WebImage

/// A claimed job on its way: which of its URLs are open, and what is known but not reported yet. Kept by ``JobLedger``.
struct JobRun {
    let claim: QueueJobs.Claim
    /// The name under which the worker claimed it; after a loss the jobs of the old name are finished, but not begun.
    let worker: String
    /// Taken back when the job is called back: its batch, the queue or the worker is paused.
    let permit = DownloadPermit()
    var unreported: [SettledEntry] = []
    var open: Int
    /// How its URLs ended, 0 = open: as they were claimed, and what ended here since.
    private(set) var outcomes: [UInt8]
    /// When it was claimed.
    let claimedAt = ContinuousClock.now
    /// The last position whose URL has begun; those behind it wait for their turn.
    var begunThrough = -1
    /// Nothing more comes: all its URLs ended, or the worker leaves some open for others.
    var hasEnded = false
    /// Whether Redis knows that all its URLs have ended: there is nothing more to say of it.
    var isToldToEnd = false
    /// How many of its open URLs nobody here will end.
    var left = 0
    /// Whether it is on its batch's list again, while its last transfers end here.
    var isGivenBack = false

    /// Whether it is to go back to its batch's list: open URLs of it are left, or it was called back before they began.
    var mustGoBack: Bool { !isGivenBack && open > 0 && (hasEnded || permit.isRevoked && left > 0) }

    /// Whether what is known of it is to be reported now.
    var isDue: Bool { open <= 0 || unreported.count >= 256 || isGivenBack }

    init(claim: QueueJobs.Claim, worker: String) {
        self.claim = claim
        self.worker = worker
        open = claim.outcomes.count { $0 == 0 }
        outcomes = claim.outcomes
    }

    /// Opens again what was fetched and is not reported: it is left for others.
    /// - Returns: the positions whose files were written here.
    mutating func takeBackDownloads() -> [Int] {
        let isDoubtful = { (item: SettledEntry) in item.outcome == .downloaded || item.outcome == .hit }
        let doubtful = unreported.filter(isDoubtful)
        unreported.removeAll(where: isDoubtful)
        open += doubtful.count
        left += doubtful.count
        for item in doubtful { outcomes[item.position] = 0 }
        return doubtful.filter { $0.outcome == .downloaded }.map(\.position)
    }

    /// Notes how URLs ended.
    mutating func settle(_ items: [SettledEntry]) {
        unreported += items
        open -= items.count
        for item in items { outcomes[item.position] = item.outcome.rawValue }
    }
}

internal import WebImage

/// A claimed job while it runs, with its open URLs and unreported outcomes. Kept by ``JobLedger``.
struct JobRun {
    let claim: QueueJobs.Claim
    /// The worker name of the claim; after a loss, jobs of the old name are finished, but not started.
    let worker: String
    /// Revoked when the job is called back: its batch, the queue or the worker is paused.
    let permit = DownloadPermit()
    var unreported: [SettledEntry] = []
    var open: Int
    /// Outcomes of its URLs, 0 = open: as claimed, and those ended here since.
    private(set) var outcomes: [UInt8]
    let claimedAt = ContinuousClock.now
    var startedThrough = -1
    /// No more outcomes follow: all its URLs ended, or some are left open for others.
    var hasEnded = false
    /// Whether Redis knows that all its URLs have ended: there is nothing more to report.
    var isEndReported = false
    /// How many of its open URLs this worker will not end.
    var left = 0
    /// Whether the worker's own network let one of its URLs fail.
    var isDoubted = false
    /// Whether it is on its batch's list again, while its last transfers end here.
    var isReturned = false

    /// Whether it has to go back to its batch's list: open URLs of it are left, or it was called back before they started.
    var mustReturn: Bool { !isReturned && open > 0 && (hasEnded || permit.isRevoked && left > 0) }

    /// Whether its outcomes have to be reported now.
    var isDue: Bool { open <= 0 || unreported.count >= 256 || isReturned }

    init(claim: QueueJobs.Claim, worker: String) {
        self.claim = claim
        self.worker = worker
        open = claim.outcomes.count { $0 == 0 }
        outcomes = claim.outcomes
    }

    /// Reopens URLs that were fetched but not reported, for others.
    /// - Returns: the positions whose files were written here.
    mutating func reopenDownloads() -> [Int] {
        let isDoubtful = { (item: SettledEntry) in item.outcome == .downloaded || item.outcome == .hit }
        let doubtful = unreported.filter(isDoubtful)
        unreported.removeAll(where: isDoubtful)
        open += doubtful.count
        left += doubtful.count
        for item in doubtful { outcomes[item.position] = 0 }
        return doubtful.filter { $0.outcome == .downloaded }.map(\.position)
    }

    /// - Returns: ``isDue``.
    mutating func settle(_ items: [SettledEntry]) -> Bool {
        unreported += items
        open -= items.count
        for item in items { outcomes[item.position] = item.outcome.rawValue }
        return isDue
    }
}

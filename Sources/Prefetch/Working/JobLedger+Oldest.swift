extension JobLedger {
    /// A URL that has not ended.
    struct OpenEntry: Sendable {
        var batch: BatchIdentity
        /// Its index in the batch.
        var index: Int
        var entry: PrefetchJob.Entry
        /// When its job was claimed.
        var claimedAt: ContinuousClock.Instant
        /// Whether its turn has come.
        var hasBegun: Bool
    }

    /// The most URLs of one batch that are told of, and the most of all.
    private static let mostOfBatch = 5, most = 20

    /// The open URLs whose jobs were claimed first: a few of each batch.
    func oldest() -> [OpenEntry] {
        var found: [OpenEntry] = []
        var counts: [BatchIdentity: Int] = [:]
        for run in openRuns() {
            let job = run.claim.job
            for (position, entry) in job.entries.enumerated() where run.outcomes[position] == 0 {
                guard found.count < Self.most else { return found }
                guard counts[run.claim.batch, default: 0] < Self.mostOfBatch else { break }
                counts[run.claim.batch, default: 0] += 1
                found.append(
                    OpenEntry(
                        batch: run.claim.batch, index: job.base + position, entry: entry, claimedAt: run.claimedAt,
                        hasBegun: position <= run.begunThrough))
            }
        }
        return found
    }
}

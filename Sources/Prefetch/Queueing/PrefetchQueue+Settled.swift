package import WebImage

extension PrefetchQueue {
    /// How one URL of a job ended, with what is written beside it.
    package struct Settled: Sendable {
        /// Position in the job, from 0.
        package var position: Int
        package var outcome: PrefetchOutcome
        /// Bytes fetched; 0 unless downloaded.
        package var bytes = 0
        /// What is known of its transfer, where somebody was asked for it.
        package var fetch: FetchTally.Fetch?
        /// What `failures` shows, for a skipped URL.
        package var failure: FailureDetail?
        /// The URL, where the policy adds it to the failed set.
        package var list: String?
        /// The URL, where a success removes it from the failed set.
        package var unlist: String?

        package init(position: Int, outcome: PrefetchOutcome) {
            self.position = position
            self.outcome = outcome
        }

        /// Whether something is written beside the outcome.
        var isHeavy: Bool { failure != nil || list != nil || unlist != nil }
    }

    /// A group of outcomes of one job.
    package struct Report: Sendable {
        package var job: String
        package var batch: BatchIdentity
        package var base: Int
        package var count: Int
        /// Whether the job has ended with this.
        package var isFinal: Bool
        package var settled: [Settled]
        /// The most entries of skipped URLs the batch keeps.
        package var keepDetails: Int
        /// Milliseconds after which the URLs it lists lapse; 0 = never.
        package var lapse = 0

        package init(
            job: String, batch: BatchIdentity, base: Int, count: Int, isFinal: Bool, settled: [Settled],
            keepDetails: Int, lapse: Int = 0
        ) {
            self.job = job
            self.batch = batch
            self.base = base
            self.count = count
            self.isFinal = isFinal
            self.settled = settled
            self.keepDetails = keepDetails
            self.lapse = lapse
        }
    }
}

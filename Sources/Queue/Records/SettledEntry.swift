/// How one URL of a job ended, with what is written beside it.
package struct SettledEntry: Sendable {
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

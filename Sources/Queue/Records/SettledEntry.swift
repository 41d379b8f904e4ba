/// The outcome of one URL of a job, with the records that go with it.
package struct SettledEntry: Sendable {
    /// Position in the job, from 0.
    package var position: Int
    package var outcome: PrefetchOutcome
    /// Bytes fetched; 0 unless downloaded.
    package var bytes = 0
    /// Nil without a request.
    package var fetch: FetchTally.Fetch?
    package var failure: FailureDetail?
    /// The URL, if the policy adds it to the failed set.
    package var list: String?
    /// The URL, if its success removes it from the failed set.
    package var unlist: String?

    package init(position: Int, outcome: PrefetchOutcome) {
        self.position = position
        self.outcome = outcome
    }

    /// Whether more than the outcome is written.
    var isHeavy: Bool { failure != nil || list != nil || unlist != nil }
}

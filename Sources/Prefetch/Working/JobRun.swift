/// A claimed job on its way: which of its URLs are open, and what is known but not reported yet. Kept by ``JobLedger``.
struct JobRun {
    let claim: PrefetchQueue.Claim
    /// The name under which the worker claimed it; after a loss the jobs of the old name are finished, but not begun.
    let worker: String
    var unreported: [PrefetchQueue.Settled] = []
    var open: Int
    /// Nothing more comes: all its URLs ended, or the worker leaves some open for others.
    var hasEnded = false

    init(claim: PrefetchQueue.Claim, worker: String) {
        self.claim = claim
        self.worker = worker
        open = claim.outcomes.count { $0 == 0 }
    }
}

/// What the history of a worker says about one job, as far as a check needs it.
struct HistoryEvent {
    enum Kind {
        /// The worker has the job; the items are what was settled before.
        case claimed
        /// It is about to report the items.
        case sent
        /// Redis has answered, in the start with this number: the items are what the report was first to settle.
        case confirmed(server: Int)
    }

    var kind: Kind
    /// A number for each name of a worker.
    var worker: Int
    /// The indices of the job.
    var range: Range<Int>
    var items: [(index: Int, code: UInt8)]
}

/// An event of a worker's history about one job, as needed by a check.
struct HistoryEvent {
    enum Kind {
        /// The worker claimed the job; the items are outcomes settled before.
        case claimed
        case sent
        /// Redis replied, in the start of this number: the items are those that the report was first to settle.
        case confirmed(server: Int)
    }

    var kind: Kind
    /// A number for each worker name.
    var worker: Int
    var range: Range<Int>
    var items: [(index: Int, code: UInt8)]
}

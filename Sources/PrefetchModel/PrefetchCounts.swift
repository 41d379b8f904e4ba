/// How many URLs ended in which way. finished = the sum of all outcomes; skipped = the sum of those without an image.
public struct PrefetchCounts: Sendable, Equatable {
    private var numbers = [Int](repeating: 0, count: Int(PrefetchOutcome.unknown.rawValue) + 1)
    /// Bytes of the images that were downloaded.
    public var bytes = 0

    /// All zero.
    public init() {}

    /// The number of URLs that ended so.
    public subscript(outcome: PrefetchOutcome) -> Int {
        get { numbers[Int(outcome.rawValue)] }
        set { numbers[Int(outcome.rawValue)] = newValue }
    }

    /// URLs that ended, well or badly (SDWebImage's finishedCount).
    public var finished: Int { numbers.reduce(0, +) }

    /// URLs that ended without an image (SDWebImage's skippedCount).
    public var skipped: Int {
        PrefetchOutcome.allCases.reduce(0) { $0 + ($1.isSkipped ? self[$1] : 0) }
    }

    /// Adds up two sets of counts.
    public static func += (lhs: inout PrefetchCounts, rhs: PrefetchCounts) {
        for outcome in PrefetchOutcome.allCases { lhs[outcome] += rhs[outcome] }
        lhs.bytes += rhs.bytes
    }
}

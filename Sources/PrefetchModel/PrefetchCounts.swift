/// Number of URLs per outcome. finished = sum of all outcomes; skipped = sum of those without an image.
public struct PrefetchCounts: Sendable, Equatable {
    private var numbers = [Int](repeating: 0, count: Int(PrefetchOutcome.unknown.rawValue) + 1)
    /// Bytes of downloaded images.
    public var bytes = 0

    /// All counts zero.
    public init() {}

    /// Number of URLs with this outcome.
    public subscript(outcome: PrefetchOutcome) -> Int {
        get { numbers[Int(outcome.rawValue)] }
        set { numbers[Int(outcome.rawValue)] = newValue }
    }

    /// URLs that have ended (SDWebImage's finishedCount).
    public var finished: Int { numbers.reduce(0, +) }

    /// URLs that ended without an image (SDWebImage's skippedCount).
    public var skipped: Int {
        PrefetchOutcome.allCases.reduce(0) { $0 + ($1.isSkipped ? self[$1] : 0) }
    }

    /// Adds two sets of counts.
    public static func += (lhs: inout PrefetchCounts, rhs: PrefetchCounts) {
        for outcome in PrefetchOutcome.allCases { lhs[outcome] += rhs[outcome] }
        lhs.bytes += rhs.bytes
    }
}

/// How much a ``OriginResolver`` takes, and how often it fails, whatever it answers.
package struct NameLoad: Sendable {
    /// Answers per second; nil: no limit.
    package var capacity: Double?
    /// Queries that wait at most; further ones are dropped.
    package var queue = 1000
    /// Seconds of each answer, in addition to its wait.
    package var latency = 0.0
    /// Shares of the queries that get SERVFAIL, and no answer.
    package var failures = 0.0, loss = 0.0

    package init() {}
}

/// Applies a load to queries; a value without a clock.
struct NameLoadState: Sendable {
    enum Verdict: Equatable {
        case drop
        case fail(after: Double)
        case answer(after: Double)
    }

    var load = NameLoad()
    private var busyUntil = 0.0
    private var random: UInt64

    init(seed: UInt64) { random = seed }

    mutating func verdict(now: Double) -> Verdict {
        var wait = 0.0
        if let capacity = load.capacity {
            wait = max(0, busyUntil - now)
            guard wait * capacity <= Double(load.queue) else { return .drop }
            busyUntil = max(now, busyUntil) + 1 / capacity
            wait = busyUntil - now
        }
        let share = next()
        if share < load.loss { return .drop }
        return share < load.loss + load.failures
            ? .fail(after: wait + load.latency) : .answer(after: wait + load.latency)
    }

    /// 0 to 1 (splitmix64).
    private mutating func next() -> Double {
        random &+= 0x9e37_79b9_7f4a_7c15
        var mixed = random
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return Double((mixed ^ (mixed >> 31)) >> 11) / Double(1 << 53)
    }
}

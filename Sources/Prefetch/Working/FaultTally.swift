/// Tells faults of single files from one of their disk: more than a few within seconds, without as many successes, are the disk's.
struct FaultTally: Sendable {
    private static let most = 8
    private static let span = Duration.seconds(10)

    private var faults: [(at: ContinuousClock.Instant, successes: Int)] = []
    /// URLs that ended with an image.
    private var successes = 0

    mutating func succeed(_ count: Int = 1) { successes += count }

    /// Takes a fault of one file.
    /// - Returns: whether it may still be that.
    mutating func fail(now: ContinuousClock.Instant = .now) -> Bool {
        faults.removeAll { now - $0.at > Self.span }
        faults.append((now, successes))
        return faults.count <= Self.most || successes - faults[0].successes >= faults.count
    }
}

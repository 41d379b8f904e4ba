/// When something that failed is tried again: after a while that doubles with each failure in a row, up to 30 s.
struct BackOff: Sendable {
    private static let longest = Duration.seconds(30)

    private let first: Duration
    private var length: Duration?
    private var end = ContinuousClock.now

    init(first: Duration) { self.first = first }

    /// Whether it failed the last time.
    var isRunning: Bool { length != nil }

    func isDue(now: ContinuousClock.Instant = .now) -> Bool { length == nil || end <= now }

    /// Time until it is due.
    func rest(now: ContinuousClock.Instant = .now) -> Duration { length == nil ? .zero : max(.zero, end - now) }

    /// * `jitter`: the part of the time that is waited, so that many workers do not try at one moment.
    mutating func fail(now: ContinuousClock.Instant = .now, jitter: Double = 1) {
        let next = length.map { min(Self.longest, $0 * 2) } ?? first
        (length, end) = (next, now + next * jitter)
    }

    mutating func succeed() { length = nil }

    /// Between 3/4 and all of the time.
    static var jitter: Double { .random(in: 0.75...1) }
}

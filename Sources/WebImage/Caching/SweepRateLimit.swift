internal import Glibc

/// Limits the rate of a sweep, so that deletions do not slow concurrent stores.
struct SweepRateLimit {
    private let rate: Int
    private let began = ContinuousClock.now
    private var done = 0

    /// * `rate`: files per second; 0: no limit.
    init(rate: Int) { self.rate = rate }

    /// Counts a file and blocks if over the rate; returns early if `isOver`.
    mutating func step(_ isOver: () -> Bool) {
        guard rate > 0 else { return }
        done += 1
        let due = began + .nanoseconds(Int64(done) * 1_000_000_000 / Int64(rate))
        while !isOver() {
            let ahead = due - .now
            // A shorter sleep costs more than it gains.
            guard ahead > .milliseconds(5) else { return }
            let part = min(ahead, .milliseconds(100))
            var time = timespec(tv_sec: 0, tv_nsec: Int(part.components.attoseconds / 1_000_000_000))
            nanosleep(&time, nil)
        }
    }
}

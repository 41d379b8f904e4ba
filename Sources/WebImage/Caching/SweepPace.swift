internal import Glibc

/// Holds a sweep back, so that what it deletes does not slow those who store.
struct SweepPace {
    private let rate: Int
    private let began = ContinuousClock.now
    private var done = 0

    /// * `rate`: files a second; 0: no limit.
    init(rate: Int) { self.rate = rate }

    /// Notes one more, and blocks where they are too many; returns early when `isOver` says so.
    mutating func step(_ isOver: () -> Bool) {
        guard rate > 0 else { return }
        done += 1
        let due = began + .nanoseconds(Int64(done) * 1_000_000_000 / Int64(rate))
        while !isOver() {
            let ahead = due - .now
            // Below that a sleep costs more than it gives.
            guard ahead > .milliseconds(5) else { return }
            let part = min(ahead, .milliseconds(100))
            var time = timespec(tv_sec: 0, tv_nsec: Int(part.components.attoseconds / 1_000_000_000))
            nanosleep(&time, nil)
        }
    }
}

/// Detects a program that cannot run: five deaths within ten seconds without progress. `WorkerSupervisor` restarts a dead worker after
/// ``pause(beforeRestart:)``, and gives up when ``died(at:progress:)`` is true, counting all its workers together; at once if the exit code
/// states that a worker cannot work here.
struct CrashLoop: Sendable {
    static let limit = 5
    static let window = Duration.seconds(10)

    private var deaths: [(at: ContinuousClock.Instant, progress: Int)] = []

    /// Counts a death; `progress` is any number that changes when work gets done.
    /// - Returns: whether it is a crash loop now.
    mutating func died(at now: ContinuousClock.Instant, progress: Int = 0) -> Bool {
        deaths.removeAll { now - $0.at > Self.window || $0.progress != progress }
        deaths.append((now, progress))
        return deaths.count >= Self.limit
    }

    /// The back-off before restart number `count` in a row (from 1): 100 ms, doubled up to 2 s.
    static func pause(beforeRestart count: Int) -> Duration {
        .milliseconds(min(2000, 100 << min(max(count - 1, 0), 5)))
    }
}

/// Tells bad luck from a program that cannot run: five deaths within ten seconds while nothing got done. `WorkerSupervisor` starts a worker
/// that died again after ``pause(beforeRestart:)``, and gives up where ``died(at:progress:)`` says so, all its workers counted together; at
/// once where the exit code says that a worker cannot work here.
struct CrashLoop: Sendable {
    /// How many deaths are too many.
    static let limit = 5
    /// Within how long.
    static let window = Duration.seconds(10)

    private var deaths: [(at: ContinuousClock.Instant, progress: Int)] = []

    /// Counts a death; `progress` is any number that changes when work gets done.
    /// - Returns: whether it is a loop by now.
    mutating func died(at now: ContinuousClock.Instant, progress: Int = 0) -> Bool {
        deaths.removeAll { now - $0.at > Self.window || $0.progress != progress }
        deaths.append((now, progress))
        return deaths.count >= Self.limit
    }

    /// The pause before restart number `count` in a row (from 1): 100 ms, doubled up to 2 s.
    static func pause(beforeRestart count: Int) -> Duration {
        .milliseconds(min(2000, 100 << min(max(count - 1, 0), 5)))
    }
}

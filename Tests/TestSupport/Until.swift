/// Returns once something holds; a test that waits in vain ends by its time limit.
package func until(_ condition: () async throws -> Bool) async throws {
    var looks = Looks()
    while !(try await condition()) { try await Task.sleep(for: looks.pause()) }
}

/// Whether something holds within that time.
package func becomes(
    within time: Duration = .seconds(10), _ condition: () async throws -> Bool
) async rethrows -> Bool {
    var looks = Looks()
    while looks.seconds < time {
        if try await condition() { return true }
        try? await Task.sleep(for: looks.pause())
    }
    return false
}

/// How often something is looked for: seldom what takes long to come, and what takes long to look at. A look costs the processor that what is
/// waited for needs.
private struct Looks {
    private let began = ContinuousClock.now
    /// When the next look begins.
    private var next = ContinuousClock.now

    var seconds: Duration { ContinuousClock.now - began }

    /// What to wait after a look that has just ended.
    mutating func pause() -> Duration {
        let took = ContinuousClock.now - next
        let pause = max(.milliseconds(1), min(seconds / 10, .milliseconds(25)), min(took * 2, .milliseconds(250)))
        next = .now + pause
        return pause
    }
}

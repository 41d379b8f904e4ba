/// Runs `body` until it succeeds, fails for good, or `deadline` has passed: after an error that waiting can heal it waits with
/// full jitter, up to 50 ms at first and up to 5 s at last, and runs it again.
///
/// Only for commands that may run twice: after a lost reply nobody knows whether the first one did. Without a deadline it waits
/// for ever; with one, the error of the last try is thrown when the next wait would end past it, and `interrupted` where the
/// task is cancelled while it waits. `canHeal` says which errors are waited out, by default all that are transient. `onRetry` hears of every error that is waited out, and for how long: for a line in a log.
package nonisolated(nonsending) func withRetry<Success>(
    until deadline: ContinuousClock.Instant? = nil,
    canHeal: (RedisError) -> Bool = { $0.isTransient },
    onRetry: ((RedisError, Duration) -> Void)? = nil,
    _ body: nonisolated(nonsending) () async throws(RedisError) -> Success
) async throws(RedisError) -> Success {
    var ceiling = Duration.milliseconds(50)
    while true {
        let failure: RedisError
        do throws(RedisError) {
            return try await body()
        } catch {
            failure = error
        }
        guard canHeal(failure), !Task.isCancelled else { throw failure }
        let wait = ceiling * Double.random(in: 0...1)
        if let deadline, ContinuousClock.now + wait > deadline { throw failure }
        onRetry?(failure, wait)
        do {
            try await Task.sleep(for: wait)
        } catch {
            throw RedisError(.interrupted, "cancelled while Redis was away: \(failure.message)")
        }
        ceiling = min(ceiling * 2, .seconds(5))
    }
}

/// Runs `body` until it succeeds, fails permanently, or `deadline` passes. After a transient error it waits with full jitter, with a
/// ceiling that doubles from 50 ms to 5 s, and tries again.
///
/// Only for idempotent commands: after a lost reply the first call may have run. Without a deadline it retries for ever; with one, it
/// throws the last error if the next wait would end past it. Throws `interrupted` if the task is cancelled during a wait. `isRetryable` selects
/// the errors to retry, by default all transient ones. `onRetry` receives every retried error and its wait, for logging.
package nonisolated(nonsending) func withRetry<Success>(
    until deadline: ContinuousClock.Instant? = nil,
    isRetryable: (RedisError) -> Bool = { $0.isTransient },
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
        guard isRetryable(failure), !Task.isCancelled else { throw failure }
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

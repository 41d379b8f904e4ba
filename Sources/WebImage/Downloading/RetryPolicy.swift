/// When a transient failure is tried again.
struct RetryPolicy: Sendable {
    var maxAttempts: Int
    var baseDelay: Double
    var maxDelay: Double
    var maxRetryAfter: Double

    /// Seconds to wait after that many attempts; nil where there is no further one.
    ///
    /// Full jitter: anything between nothing and the doubled delay, so that many workers do not come back together
    /// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
    /// `Retry-After` is the least, up to its limit. `random` is between 0 and 1.
    func delay(afterAttempts attempts: Int, error: WebImageError, random: Double) -> Double? {
        guard error.isTransient, attempts < maxAttempts else { return nil }
        var ceiling = baseDelay
        for _ in 1..<max(1, attempts) where ceiling < maxDelay { ceiling *= 2 }
        let jittered = random * min(ceiling, maxDelay)
        return max(jittered, min(error.retryAfter ?? 0, maxRetryAfter))
    }
}

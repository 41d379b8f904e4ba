/// When a failure is tried again.
struct RetryPolicy: Sendable {
    var maxAttempts: Int
    var baseDelay: Double
    var maxDelay: Double
    var maxRetryAfter: Double
    /// Which transient failures are.
    var errors = Set(RetriedError.allCases)
    /// Status codes that are beside those that are transient.
    var statusCodes: Set<Int> = []

    /// Seconds to wait after that many attempts; nil where there is no further one.
    ///
    /// Full jitter: anything between nothing and the doubled delay, so that many workers do not come back together
    /// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
    /// `Retry-After` is the least, up to its limit. `random` is between 0 and 1.
    func delay(afterAttempts attempts: Int, error: WebImageError, random: Double) -> Double? {
        guard attempts < maxAttempts, retries(error) else { return nil }
        var ceiling = baseDelay
        for _ in 1..<max(1, attempts) where ceiling < maxDelay { ceiling *= 2 }
        let jittered = random * min(ceiling, maxDelay)
        return max(jittered, min(error.retryAfter ?? 0, maxRetryAfter))
    }

    private func retries(_ error: WebImageError) -> Bool {
        if error.code == .invalidDownloadStatusCode, let status = error.httpStatus, statusCodes.contains(status) {
            return true
        }
        guard error.isTransient else { return false }
        return RetriedError(error.code).map { errors.contains($0) } ?? true
    }
}

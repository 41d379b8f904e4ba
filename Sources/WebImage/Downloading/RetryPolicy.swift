/// Whether a failed request is repeated, and after which pause. `DownloadLoop.fail` applies it; the download waits in the loop's heap of
/// retries meanwhile, without a slot. Defaults are those of ``ImageDownloader/Configuration``.
struct RetryPolicy: Sendable {
    /// Requests for a URL, the first included: 3.
    var maxAttempts: Int
    /// Seconds: the longest first pause (0.5), which doubles up to the longest of all (30).
    var baseDelay: Double, maxDelay: Double
    /// Seconds: the longest `Retry-After` that is waited for (60).
    var maxRetryAfter: Double
    /// The kinds of transient failure that are retried: all.
    var errors = Set(RetriedError.allCases)
    /// Further status codes that are retried: none.
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

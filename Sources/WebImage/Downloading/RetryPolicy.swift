/// Whether and when a failed request is retried. Applied by `DownloadLoop.fail`; meanwhile the download waits in the loop's heap of
/// retries, without a slot. Defaults are those of ``ImageDownloader/Configuration``.
struct RetryPolicy: Sendable {
    /// Maximum requests for a URL, including the first: 3.
    var maxTries: Int
    /// In seconds: the maximum first pause (0.5), doubled up to the overall maximum (30).
    var baseDelay: Double, maxDelay: Double
    /// In seconds: the maximum `Retry-After` to wait for (60).
    var maxRetryAfter: Double
    /// The transient failures that are retried: all.
    var errors = Set(RetriedError.allCases)
    /// Additional status codes to retry: none.
    var statusCodes: Set<Int> = []

    /// Seconds to wait after that many tries; nil: no further try. Full jitter: a random part of the doubled delay, so that many
    /// workers do not retry in step (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). `Retry-After` is the
    /// minimum, up to its limit. `random` is between 0 and 1.
    /// * `excused`: tries that do not count; up to four of them lengthen the pause.
    func delay(afterTries tries: Int, excused: Int = 0, error: WebImageError, random: Double) -> Double? {
        guard tries < maxTries, retries(error) else { return nil }
        var ceiling = baseDelay
        for _ in 1..<max(1, tries + min(4, excused)) where ceiling < maxDelay { ceiling *= 2 }
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

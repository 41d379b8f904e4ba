/// The time one URL has spent with a connection, over all of its tries, and the bytes that came in it.
///
/// Waiting for a slot, a name, a connection or the next try costs nothing, and neither does a pause that the downloader itself imposes
/// (`limitRate`). A value without a clock: the downloader's thread passes the time.
struct TransferTime {
    /// Seconds with a connection.
    private(set) var seconds = 0.0
    /// Bytes received in them, headers included.
    private(set) var bytes = 0
    private var countedUntil: Double?
    private var countedBytes = 0

    /// A hop begins; nothing counts before its request is sent.
    mutating func beginHop() {
        countedUntil = nil
        countedBytes = 0
    }

    /// Counts up to `now`.
    /// * `progress`: of the hop under way.
    /// * `isHeldBack`: the downloader keeps the bytes from coming.
    mutating func count(_ progress: TransferProgress, isHeldBack: Bool, now: Double) {
        guard progress.requestWasSent else { return }
        bytes += progress.bytes - countedBytes
        countedBytes = progress.bytes
        if !isHeldBack { seconds += now - (countedUntil ?? now) }
        countedUntil = now
    }

    /// The error where the URL has used up what it has; nil while it has not.
    func check(_ limits: ImageDownloader.Configuration, attempts: Int) -> WebImageError? {
        func error(_ limit: Double, _ rate: String) -> WebImageError {
            WebImageError(
                .timedOut,
                "not done after \(secondsText(limit))\(rate) with a connection, in \(attempts) \(attempts == 1 ? "try" : "tries")"
            )
        }
        if let limit = limits.maxTotalTime, seconds >= limit { return error(limit, "") }
        if let limit = limits.maxSlowTime, seconds >= limit, Double(bytes) < Double(limits.slowSpeed) * seconds {
            return error(limit, " at less than \(limits.slowSpeed) bytes/s")
        }
        return nil
    }
}

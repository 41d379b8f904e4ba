/// The connected time of one URL over all of its tries, and the bytes received in it. Waiting for a slot, DNS, a connection or a retry
/// does not count, and neither do pauses imposed by the downloader (`limitRate`). A value without a clock: the downloader's thread passes
/// the time.
struct TransferTime {
    private(set) var seconds = 0.0
    /// Bytes received, including headers.
    private(set) var bytes = 0
    private var countedUntil: Double?
    private var countedBytes = 0

    /// Starts a hop; counting starts when its request has been sent.
    mutating func beginHop() {
        countedUntil = nil
        countedBytes = 0
    }

    /// Counts up to `now`.
    /// * `progress`: of the current hop.
    /// * `isThrottled`: the downloader is holding the transfer back.
    mutating func count(_ progress: TransferProgress, isThrottled: Bool, now: Double) {
        guard progress.requestWasSent else { return }
        bytes += progress.bytes - countedBytes
        countedBytes = progress.bytes
        if !isThrottled { seconds += now - (countedUntil ?? now) }
        countedUntil = now
    }

    func check(_ limits: ImageDownloader.Configuration, tries: Int) -> WebImageError? {
        func error(_ limit: Double, _ rate: String) -> WebImageError {
            WebImageError(
                .timedOut,
                "not done after \(secondsText(limit))\(rate) with a connection, in \(tries) \(tries == 1 ? "try" : "tries")"
            )
        }
        if let limit = limits.maxTotalTime, seconds >= limit { return error(limit, "") }
        if let limit = limits.maxSlowTime, seconds >= limit, Double(bytes) < Double(limits.slowSpeed) * seconds {
            return error(limit, " at less than \(limits.slowSpeed) bytes/s")
        }
        return nil
    }
}

package struct DownloadState: Sendable, Equatable {
    package enum Phase: Sendable, Equatable {
        case waitingForHost
        case waitingForSlot
        case transferring
        /// Connected but stalled; holds no slot of the downloader.
        case stalled
        case retrying
    }

    package var phase: Phase
    /// Seconds in this phase; for a stalled download, seconds without a byte.
    package var elapsed: Double
    /// Seconds until its retry, until its host may be requested again, or until its transfer times out.
    package var remaining: Double?
    package var host: String
    package var tries: Int
    package var callers: Int
    /// Why the last try failed or the host is on hold; empty if neither applies.
    package var reason = ""
    /// What holds its host; nil unless it waits for it.
    package var hostWait: HostWait.Reason?

    /// * `since`: start of the phase; nil: start of its wait.
    init(_ operation: DownloadOperation, _ phase: Phase, since: Double? = nil, at time: Double) {
        self.phase = phase
        elapsed = max(0, time - (since ?? operation.since))
        host = operation.request.host
        tries = operation.tries
        callers = operation.waiters.count
    }
}

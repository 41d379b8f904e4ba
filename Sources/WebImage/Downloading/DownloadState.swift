/// What a download waits for at one moment.
package struct DownloadState: Sendable, Equatable {
    /// What it does.
    package enum Phase: Sendable, Equatable {
        /// It could begin but for the limit of transfers to its host.
        case waitingForHost
        /// It could begin but for the limit of transfers at once.
        case waitingForSlot
        /// Its bytes come.
        case transferring
        /// Its connection is there, but silent; it holds no slot of the downloader.
        case parked
        /// It pauses before its next try.
        case retrying
    }

    /// What it does.
    package var phase: Phase
    /// Seconds it has done so; for a parked one, seconds without a byte.
    package var elapsed: Double
    /// Seconds until its next try, until its host may be asked again, or until its transfer times out.
    package var remaining: Double?
    /// The host of the hop it is at.
    package var host: String
    /// Tries begun.
    package var attempts: Int
    /// Calls that wait for its result.
    package var callers: Int
    /// Why the last try failed, or why its host is not asked; empty where neither keeps it.
    package var reason = ""

    /// * `since`: when it began to do so; nil: when it began to wait.
    init(_ operation: DownloadOperation, _ phase: Phase, since: Double? = nil, at time: Double) {
        self.phase = phase
        elapsed = max(0, time - (since ?? operation.since))
        host = operation.request.host
        attempts = operation.attempts
        callers = operation.waiters.count
    }
}

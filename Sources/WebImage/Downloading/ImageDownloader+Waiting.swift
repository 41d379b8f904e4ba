internal import Threading

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
    /// Why the last try failed, or why its host is not asked; empty where neither keeps it.
    package var reason = ""
}

extension ImageDownloader {
    /// What downloads of these URLs wait for now; of those that are not under way nothing. Looks at every download under way.
    package func states(of urls: Set<String>) -> [String: DownloadState] {
        let time = MonotonicClock.now
        var states: [String: DownloadState] = [:]
        for operation in operations.values where urls.contains(operation.key.url) {
            states[operation.key.url] = state(of: operation, at: time)
        }
        return states
    }

    private func state(of operation: DownloadOperation, at time: Double) -> DownloadState {
        func state(_ phase: DownloadState.Phase, since: Double) -> DownloadState {
            DownloadState(
                phase: phase, elapsed: max(0, time - since), host: operation.request.host, attempts: operation.attempts)
        }
        if operation.handle != nil {
            guard operation.isParked else { return state(.transferring, since: operation.progress.hopStart) }
            var silent = state(.parked, since: operation.progress.lastByte)
            let end =
                operation.progress.requestWasSent
                ? operation.progress.lastByte + configuration.downloadTimeout
                : operation.progress.hopStart + configuration.connectTimeout
            silent.remaining = max(0, end - time)
            return silent
        }
        if let pause = operation.pause {
            var waiting = state(.retrying, since: operation.since)
            waiting.remaining = max(0, pause.due - time)
            waiting.reason = pause.error.message + (pause.error.retryAfter == nil ? "" : " (Retry-After)")
            return waiting
        }
        if let robots, robots.isWaiting(operation) {
            var waiting = state(.waitingForHost, since: operation.since)
            waiting.reason = "its robots.txt"
            return waiting
        }
        let host = operation.host
        guard queue.isAtLimit(host: host) else { return state(.waitingForSlot, since: operation.since) }
        var waiting = state(.waitingForHost, since: operation.since)
        if let reason = governor?.reason(for: host, now: time) {
            waiting.reason = reason.text
            waiting.remaining = reason.remaining
        }
        return waiting
    }
}

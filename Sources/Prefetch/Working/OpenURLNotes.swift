internal import Threading
internal import WebImage

extension OpenURLNote {
    /// The most bytes they take in Redis.
    private static let mostBytes = 4_096

    /// What a worker's oldest open URLs wait for, for its next heartbeat: some lines, bounded in bytes. Costs one question to the downloader.
    nonisolated(nonsending) static func oldest(of worker: WorkerContext) async -> String {
        let oldest = worker.jobs.oldest()
        guard !oldest.isEmpty else { return "" }
        let states = await worker.manager.downloader.states(of: Set(oldest.map(\.entry.url)))
        var text = ""
        for open in oldest {
            let line = OpenURLNote(open, states[open.entry.url], of: worker).encoded + "\n"
            guard text.utf8.count + line.utf8.count <= Self.mostBytes else { break }
            text += line
        }
        return text
    }

    private init(_ open: JobLedger.OpenEntry, _ download: DownloadState?, of worker: WorkerContext) {
        let claimed = Int((ContinuousClock.now - open.claimedAt) / .milliseconds(1))
        self.init(batch: open.batch.id, index: open.index, state: .claimed, claimed: claimed, elapsed: claimed)
        if let download {
            state =
                switch download.phase {
                case .transferring: .transferring
                case .parked: .stalled
                case .retrying: .retrying
                case .waitingForHost: .waitingForHost
                case .waitingForSlot: .waitingForSlot
                }
            elapsed = Int(download.elapsed * 1000)
            remaining = download.remaining.map { Int($0 * 1000) }
            attempt = download.attempts
            host = download.host
            detail = download.reason
        } else if let message = worker.hold.message ?? worker.fault.message {
            state = .paused
            detail = message
        } else if open.hasBegun {
            let key = worker.batches.key(of: open.entry.url, in: open.batch)
            if let seconds = worker.manager.cache.transfers.secondsWaiting(for: key) {
                state = .locked
                elapsed = Int(seconds * 1000)
            } else {
                // It has begun, and is neither at the network nor before it: its bytes are being verified, or wait for a thread for it.
                state = .verifying
            }
        }
    }
}

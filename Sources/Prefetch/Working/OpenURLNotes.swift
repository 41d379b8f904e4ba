internal import Threading
internal import WebImage

extension OpenURLNote {
    private static let maxBytes = 4_096
    /// The most URLs of one batch, and of all.
    private static let maxPerBatch = 5, most = 20

    /// Notes on a worker's oldest open URLs for its next heartbeat, one per line, bounded in bytes. Costs one query to the downloader.
    nonisolated(nonsending) static func oldest(of worker: WorkerContext) async -> String {
        let oldest = oldest(of: worker.jobs.openRuns())
        guard !oldest.isEmpty else { return "" }
        let urls = oldest.map { $0.run.claim.job.entries[$0.position].url }
        let states = await worker.manager.downloader.states(of: urls)
        var text = ""
        for (run, position) in oldest {
            let state = states[run.claim.job.entries[position].url]
            let line = OpenURLNote(run, position, state, of: worker).encoded + "\n"
            guard text.utf8.count + line.utf8.count <= Self.maxBytes else { break }
            text += line
        }
        return text
    }

    /// The open URLs of the jobs that were claimed first: a few of each batch.
    private static func oldest(of runs: [JobRun]) -> [(run: JobRun, position: Int)] {
        var found: [(run: JobRun, position: Int)] = []
        var counts: [BatchIdentity: Int] = [:]
        for run in runs {
            for position in run.outcomes.indices where run.outcomes[position] == 0 {
                guard found.count < Self.most else { return found }
                guard counts[run.claim.batch, default: 0] < Self.maxPerBatch else { break }
                counts[run.claim.batch, default: 0] += 1
                found.append((run, position))
            }
        }
        return found
    }

    private init(_ run: JobRun, _ position: Int, _ download: DownloadState?, of worker: WorkerContext) {
        let (batch, entry) = (run.claim.batch, run.claim.job.entries[position])
        let claimed = Int((ContinuousClock.now - run.claimedAt) / .milliseconds(1))
        self.init(
            batch: batch.id, index: run.claim.job.base + position, state: .claimed, claimed: claimed, elapsed: claimed)
        if let download {
            state =
                switch download.phase {
                case .transferring: .transferring
                case .stalled: .stalled
                case .retrying: .retrying
                case .waitingForHost: .waitingForHost
                case .waitingForSlot: .waitingForSlot
                }
            elapsed = Int(download.elapsed * 1000)
            remaining = download.remaining.map { Int($0 * 1000) }
            tries = download.tries
            host = download.host
            detail = download.reason
        } else if let message = worker.hold.message ?? worker.faults.gate.message ?? worker.network.gate.message {
            state = .paused
            detail = message
        } else if position <= run.startedThrough {
            let key = worker.batches.key(of: entry, in: batch)
            if let key, let seconds = worker.manager.cache.transfers.secondsWaiting(for: key) {
                state = .locked
                elapsed = Int(seconds * 1000)
            } else {
                // Started, and neither transferring nor waiting for it: its bytes are being verified, or wait for a thread.
                state = .verifying
            }
        }
    }
}

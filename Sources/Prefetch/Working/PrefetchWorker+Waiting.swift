internal import Threading
internal import WebImage

extension PrefetchWorker {
    /// The most bytes its notes take in Redis.
    private static let mostNoteBytes = 4_096

    /// What its oldest open URLs wait for, for its next beat: some lines, bounded in bytes. Costs one question to the downloader.
    func oldestNotes() async -> String {
        let oldest = jobs.oldest()
        guard !oldest.isEmpty else { return "" }
        let states = await manager.downloader.states(of: Set(oldest.map(\.entry.url)))
        var text = ""
        for open in oldest {
            let line = note(open, states[open.entry.url]).encoded + "\n"
            guard text.utf8.count + line.utf8.count <= Self.mostNoteBytes else { break }
            text += line
        }
        return text
    }

    private func note(_ open: JobLedger.OpenEntry, _ download: DownloadState?) -> OpenURLNote {
        let claimed = Int((ContinuousClock.now - open.claimedAt) / .milliseconds(1))
        var note = OpenURLNote(
            batch: open.batch.id, index: open.index, state: .claimed, claimed: claimed, elapsed: claimed)
        if let download {
            note.state =
                switch download.phase {
                case .transferring: .transferring
                case .parked: .stalled
                case .retrying: .retrying
                case .waitingForHost: .waitingForHost
                case .waitingForSlot: .waitingForSlot
                }
            note.elapsed = Int(download.elapsed * 1000)
            note.remaining = download.remaining.map { Int($0 * 1000) }
            note.attempt = download.attempts
            note.host = download.host
            note.detail = download.reason
        } else if let message = hold.message ?? fault.message {
            note.state = .paused
            note.detail = message
        } else if open.hasBegun {
            let key = batches[open.batch].map { CacheKey($0.keyRule.key(for: open.entry.url)) }
            if let seconds = key.flatMap({ manager.cache.transfers.secondsWaiting(for: $0) }) {
                note.state = .locked
                note.elapsed = Int(seconds * 1000)
            } else {
                // It has begun, and is neither at the network nor before it: its bytes are being verified, or wait for a thread for it.
                note.state = .verifying
            }
        }
        return note
    }
}

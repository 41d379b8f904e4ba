internal import Redis

/// A worker that is known to have died, whatever its lease.
package struct LostWorker: Sendable {
    private let queue: PrefetchQueue
    private let name: String

    /// * `name`: the one under which it registered.
    package init(_ name: String, queue: PrefetchQueue) { (self.name, self.queue) = (name, queue) }

    /// Returns its jobs to their lists at once. What Redis refuses goes back when its lease has expired.
    /// * `suspects`: the URLs in its decoders, which are to blame, and alone; nil: nobody is, since it was made to end.
    /// - Returns: whether the death narrows (``CrashLoop``).
    package func giveBack(blaming suspects: [DecodeNotes.Suspect]?) async -> Bool {
        // What a worker has written before it died may be anything, but it may not end another.
        let suspects = suspects?.filter { $0.worker == name || $0.worker.utf8.starts(with: "\(name).".utf8) }
        var narrowed = 0
        for blamed in Dictionary(grouping: suspects ?? [], by: { [$0.worker, $0.claim] }).values {
            let positions = Set(blamed.map(\.position))
            narrowed +=
                (try? await queue.jobs.blame(
                    worker: blamed[0].worker, claim: blamed[0].claim, positions: positions)) ?? 0
        }
        for name in Set((suspects ?? []).map(\.worker)).union([name]) {
            _ = try? await queue.workers.reap(
                worker: name, most: 1_000_000, areBlamed: suspects != nil && narrowed == 0)
        }
        return narrowed > 0
    }
}

internal import Threading

/// A worker's warnings about single batches and keys: each is reported once, and the newest is sent with the heartbeats for a while.
final class WorkerWarnings: Sendable {
    private struct State {
        var known: [String] = []
        var newest: (text: String, at: ContinuousClock.Instant)?
    }

    private let onEvent: @Sendable (PrefetchWorker.Event) -> Void
    private let state = Locked(State())

    init(_ onEvent: @escaping @Sendable (PrefetchWorker.Event) -> Void) { self.onEvent = onEvent }

    /// The newest warning of the last half minute.
    var current: String? {
        state.withLock { state in
            state.newest.flatMap { ContinuousClock.now - $0.at < .seconds(30) ? $0.text : nil }
        }
    }

    /// Reports a warning, unless it is among the last hundred.
    func say(_ text: String) {
        let isNew = state.withLock { state in
            state.newest = (text, .now)
            guard !state.known.contains(text) else { return false }
            state.known = state.known.suffix(99) + [text]
            return true
        }
        if isNew { onEvent(.warning(text)) }
    }

    func say(_ notice: PrefetchQueue.Notice) {
        switch notice {
        case .buried(let batch, let head):
            say(
                "an element of the job list of \(batch) was not one of its jobs and was moved to the dead-letter list: "
                    + "\(PrefetchJob.excerpt(of: head)); see what it lost: prefetch-coord fsck \(batch)")
        case .broken(let batch, let message):
            say(
                "\(batch) cannot be processed (\(message)); other batches continue; remove it, and submit its list again: "
                    + "prefetch-coord rm --force \(batch)"
            )
        case .refused(let batch, let message):
            say("Redis refuses reports of \(batch) (\(message)); they are kept, and sent again until it takes them")
        }
    }
}

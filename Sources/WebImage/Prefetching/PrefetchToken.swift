internal import Threading

/// A list being prefetched (SDWebImagePrefetchToken).
public final class PrefetchToken: Sendable {
    private enum Phase {
        case running(Task<Void, Never>?)
        case finished, cancelled
    }

    private struct State {
        var phase = Phase.running(nil)
        var summary = PrefetchSummary()
        var requestedCount = 0
        var priority: PrefetchPriority
    }

    /// The URLs in list order.
    public let urls: [String]
    private let turns: LoadTurns
    private let state: Locked<State>
    private let ended = Latch()

    init(urls: [String], settings: PrefetchSettings, turns: LoadTurns) {
        self.urls = urls
        self.turns = turns
        state = Locked(State(priority: settings.priority))
    }

    var id: ObjectIdentifier { ObjectIdentifier(self) }

    // MARK: Control

    /// Ends the list: running loads are cancelled, and as in SDWebImage neither `didFinish` nor the completion is called. No effect after
    /// its end.
    public func cancel() {
        let task: Task<Void, Never>? = state.withLock { state in
            guard case .running(let task) = state.phase else { return nil }
            state.phase = .cancelled
            state.summary.isCancelled = true
            return task
        }
        task?.cancel()
        turns.dismiss(id)
        if isCancelled { ended.open() }
    }

    /// Whether it was cancelled before its end.
    public var isCancelled: Bool {
        state.withLock { if case .cancelled = $0.phase { true } else { false } }
    }

    /// Whether it is paused: running loads go on, and no other starts. A change after its end has no effect.
    public var isPaused: Bool {
        get { turns.isPaused(id) }
        set {
            guard state.withLock({ if case .running = $0.phase { true } else { false } }) else { return }
            turns.setPaused(newValue, id)
        }
    }

    /// Its priority among the lists of its prefetcher; a change applies to the loads that wait.
    public var priority: PrefetchPriority {
        get { state.withLock { $0.priority } }
        set {
            state.withLock { $0.priority = newValue }
            turns.move(id, to: newValue)
        }
    }

    // MARK: Progress

    /// URLs whose loads have started (SDWebImagePrefetcher's requestedCount). A duplicate counts when its result is known.
    public var requestedCount: Int { state.withLock { $0.requestedCount } }

    /// URLs that have ended.
    public var finishedCount: Int { state.withLock { $0.summary.finishedCount } }

    /// URLs that have ended without an image.
    public var skippedCount: Int { state.withLock { $0.summary.skippedCount } }

    /// Returns when the list has ended, after its completion was called, or when it was cancelled. If the waiting task is cancelled, the
    /// summary is that of this moment.
    @discardableResult
    public func wait() async -> PrefetchSummary {
        await ended.wait()
        return state.withLock { $0.summary }
    }

    // MARK: For its prefetcher

    func start(_ task: Task<Void, Never>) {
        let isLate = state.withLock { state in
            guard case .running = state.phase else { return true }
            state.phase = .running(task)
            return false
        }
        // It has ended already, or its first closure cancelled it.
        if isLate, isCancelled { task.cancel() }
    }

    func didRequest() { state.withLock { $0.requestedCount += 1 } }

    func didEnd(_ url: String, _ result: Result<LoadedImage, WebImageError>) {
        state.withLock { state in
            state.summary.add(url, result)
            state.requestedCount = max(state.requestedCount, state.summary.finishedCount)
        }
    }

    /// Ends the list; false if ``cancel()`` came first, and the end must not be reported.
    func finish() -> Bool {
        state.withLock { state in
            guard case .running = state.phase else { return false }
            state.phase = .finished
            return true
        }
    }

    /// Its end has been reported.
    func didReport() { ended.open() }
}

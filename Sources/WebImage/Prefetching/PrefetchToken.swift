internal import Threading

/// A list being prefetched (SDWebImagePrefetchToken).
public final class PrefetchToken: Sendable {
    private enum State {
        case running(Task<Void, Never>?)
        case finished, cancelled
    }

    /// The URLs in list order.
    public let urls: [String]
    private let state = Locked(State.running(nil))

    init(urls: [String]) {
        self.urls = urls
    }

    /// Ends the list: running loads are cancelled, and as in SDWebImage neither `didFinish` nor the completion is called. No effect after
    /// its end.
    public func cancel() {
        let task: Task<Void, Never>? = state.withLock { state in
            guard case .running(let task) = state else { return nil }
            state = .cancelled
            return task
        }
        task?.cancel()
    }

    /// Whether it was cancelled before its end.
    public var isCancelled: Bool {
        state.withLock { if case .cancelled = $0 { true } else { false } }
    }

    func start(_ task: Task<Void, Never>) {
        let isLate = state.withLock { state in
            guard case .running = state else { return true }
            state = .running(task)
            return false
        }
        // It has ended already, or its first closure cancelled it.
        if isLate, isCancelled { task.cancel() }
    }

    /// Ends the list; false if ``cancel()`` came first, and the end must not be reported.
    func finish() -> Bool {
        state.withLock { state in
            guard case .running = state else { return false }
            state = .finished
            return true
        }
    }
}

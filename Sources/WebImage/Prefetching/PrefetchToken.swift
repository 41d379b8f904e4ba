internal import Threading

/// One list that is being prefetched (SDWebImagePrefetchToken).
public final class PrefetchToken: Sendable {
    private enum State {
        case running(Task<Void, Never>?)
        case finished, cancelled
    }

    /// The URLs of the list, in its order.
    public let urls: [String]
    private let state = Locked(State.running(nil))

    init(urls: [String]) {
        self.urls = urls
    }

    /// Ends the list: loads that have begun are cancelled, and neither the delegate's `didFinish` nor the completion is called, as in the
    /// original. Without effect on a list that has ended.
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

    /// Remembers what ``cancel()`` has to cancel.
    func start(_ task: Task<Void, Never>) {
        let isLate = state.withLock { state in
            guard case .running = state else { return true }
            state = .running(task)
            return false
        }
        // It has ended already, or was cancelled by the first of its own closures.
        if isLate, isCancelled { task.cancel() }
    }

    /// Whether the end may be told: false where a ``cancel()`` came first.
    func finish() -> Bool {
        state.withLock { state in
            guard case .running = state else { return false }
            state = .finished
            return true
        }
    }
}

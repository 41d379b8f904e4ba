internal import Redis
internal import Threading

/// One batch that is being prefetched by other processes (SDWebImagePrefetchToken).
public final class BatchToken: Sendable {
    private struct State {
        var following: Task<Void, Never>?
        var isCancelled = false
        var queued: Result<Void, PrefetchError>?
        var end: Result<BatchStatus, PrefetchError>?
    }

    /// The name of the batch, which commands take.
    public let id: String
    /// The running batch that had the slot and was cancelled for this one.
    public let replaced: String?
    private let queue: PrefetchQueue
    private let state = Locked(State())
    private let queued = Latch(), ended = Latch()

    init(id: String, replaced: String?, queue: PrefetchQueue) {
        self.id = id
        self.replaced = replaced
        self.queue = queue
    }

    /// Ends the batch now, for all processes: its open URLs count as `cancelled`. Unlike a token of one process, whoever follows is told
    /// the end: `didFinish` and completion, once. Without effect on a batch that has ended.
    /// - Throws: `redisUnavailable` where Redis has been away for 10 s.
    public func cancel() async throws(PrefetchError) {
        do throws(RedisError) {
            if try await queue.batches.cancel(batch: id) == BatchStatus.State.running.rawValue { noteCancelled() }
        } catch {
            throw PrefetchError(error)
        }
    }

    /// Whether it was cancelled before its end, here or by anybody, as far as this follower has heard.
    public var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Returns when the whole list is in Redis: from then on the batch needs this process no more.
    /// - Throws: why it cannot be queued; `stopped` where the task is cancelled first.
    public func waitUntilQueued() async throws(PrefetchError) {
        await queued.wait()
        guard let result = state.withLock({ $0.queued }) else {
            throw PrefetchError(.stopped, "stopped waiting for \(id)")
        }
        try result.get()
    }

    /// Returns when the batch is over and its end was told.
    /// - Throws: why it cannot be followed to its end; `stopped` where the task is cancelled first, or ``stopFollowing()`` was called.
    @discardableResult public func wait() async throws(PrefetchError) -> BatchStatus {
        await ended.wait()
        guard let result = state.withLock({ $0.end }) else {
            throw PrefetchError(.stopped, "stopped waiting for \(id)")
        }
        return try result.get()
    }

    /// Calls nothing more; the batch goes on, and is queued to its end.
    public func stopFollowing() {
        state.withLock { $0.following }?.cancel()
    }

    var hasEnded: Bool { ended.isOpen }

    func start(_ task: Task<Void, Never>) {
        state.withLock { $0.following = task }
        // Its list could not be fed, and that was known before.
        guard ended.isOpen else { return }
        state.withLock { $0.following = nil }
        task.cancel()
    }

    func noteCancelled() {
        state.withLock { $0.isCancelled = true }
    }

    func noteQueued(_ result: Result<Void, PrefetchError>) {
        state.withLock { if $0.queued == nil { $0.queued = result } }
        queued.open()
        if case .failure(let error) = result { noteEnd(.failure(error)) }
    }

    /// The first end counts.
    func noteEnd(_ result: Result<BatchStatus, PrefetchError>) {
        let task = state.withLock { state in
            if state.end == nil { state.end = result }
            if case .success(let status) = result, status.state == .cancelled { state.isCancelled = true }
            defer { state.following = nil }
            return state.following
        }
        ended.open()
        task?.cancel()
    }
}

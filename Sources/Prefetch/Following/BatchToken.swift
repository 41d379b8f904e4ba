internal import Redis
internal import Threading

/// A batch that other processes prefetch (SDWebImagePrefetchToken).
public final class BatchToken: Sendable {
    private struct State {
        var following: Task<Void, Never>?
        var isCancelled = false
        var queued: Result<Void, PrefetchError>?
        var end: Result<BatchStatus, PrefetchError>?
    }

    /// The id of the batch, for commands.
    public let id: String
    /// The running batch that was cancelled to free the slot.
    public let replaced: String?
    private let queue: PrefetchQueue
    private let state = Locked(State())
    private let queued = Latch(), ended = Latch()

    init(id: String, replaced: String?, queue: PrefetchQueue) {
        self.id = id
        self.replaced = replaced
        self.queue = queue
    }

    /// Ends the batch now, for all processes: its open URLs count as `cancelled`. Unlike with a token of one process, followers still get
    /// `didFinish` and completion, once. No effect on a batch that has ended.
    /// - Throws: `redisUnavailable` if Redis has been unreachable for 10 s.
    public func cancel() async throws(PrefetchError) {
        do throws(RedisError) {
            if try await queue.batches.cancel(batch: id) == BatchStatus.State.running.rawValue { noteCancelled() }
        } catch {
            throw PrefetchError(error)
        }
    }

    /// Stops the start of its transfers, while running ones go on, or lets it go on. No effect on a batch that has ended.
    /// - Throws: `redisUnavailable` if Redis has been unreachable for 10 s.
    public func setPaused(_ isPaused: Bool) async throws(PrefetchError) {
        do throws(RedisError) {
            _ = isPaused ? try await queue.control.pause(.batch(id)) : try await queue.control.resume(.batch(id))
        } catch {
            throw PrefetchError(error)
        }
    }

    /// Changes its priority among the batches of its queue. No effect on a batch that has ended.
    /// - Throws: `redisUnavailable` if Redis has been unreachable for 10 s.
    public func setPriority(_ priority: PrefetchPriority) async throws(PrefetchError) {
        do throws(RedisError) {
            _ = try await queue.control.change(id, ["priority": [priority.rawValue]])
        } catch {
            throw PrefetchError(error)
        }
    }

    /// How its URLs ended that have no image, as far as Redis keeps their details, in list order: 100,000 at most.
    /// - Throws: `redisUnavailable` if Redis has been unreachable for 10 s.
    public func failures() async throws(PrefetchError) -> [BatchFailure] {
        let found: [Int: FailureDetail]
        do throws(RedisError) { found = try await queue.results.someFailures(of: id, most: 1_000_000) } catch {
            throw PrefetchError(error)
        }
        return found.sorted { $0.key < $1.key }.map { BatchFailure($0.value) }
    }

    /// Whether it was cancelled before its end, here or elsewhere, as far as this follower knows.
    public var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Returns when the whole list is in Redis: from then on the batch does not need this process.
    /// - Throws: why it cannot be queued; `stopped` if the task is cancelled first.
    public func waitUntilQueued() async throws(PrefetchError) {
        await queued.wait()
        guard let result = state.withLock({ $0.queued }) else {
            throw PrefetchError(.stopped, "stopped waiting for \(id)")
        }
        try result.get()
    }

    /// Returns when the batch is over and its end was reported.
    /// - Throws: why it cannot be followed to its end; `stopped` if the task is cancelled first, or ``stopFollowing()`` was called.
    @discardableResult public func wait() async throws(PrefetchError) -> BatchStatus {
        await ended.wait()
        guard let result = state.withLock({ $0.end }) else {
            throw PrefetchError(.stopped, "stopped waiting for \(id)")
        }
        return try result.get()
    }

    /// Stops all calls; the batch goes on, and is queued to its end.
    public func stopFollowing() {
        state.withLock { $0.following }?.cancel()
    }

    var hasEnded: Bool { ended.isOpen }

    func start(_ task: Task<Void, Never>) {
        state.withLock { $0.following = task }
        // Feeding its list had failed already.
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
        if case .failure(let error) = result { recordEnd(.failure(error)) }
    }

    func recordEnd(_ result: Result<BatchStatus, PrefetchError>) {
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

/// A URL of a batch that ended without an image.
public struct BatchFailure: Sendable, Equatable {
    /// The URL.
    public let url: String
    /// Its line in the list, from 1.
    public let line: Int
    /// How it ended.
    public let outcome: PrefetchOutcome
    /// What tells it apart from others with this outcome, if known.
    public let reason: FailureReason?
    /// The status code of the last response, if there was one.
    public let httpStatus: Int?
    /// How often it was requested.
    public let tries: Int
    /// Why, in one sentence.
    public let message: String

    init(_ detail: FailureDetail) {
        (url, line, outcome) = (detail.url, detail.line, detail.outcome)
        (reason, httpStatus, tries) = (detail.reason, detail.httpStatus, detail.tries)
        message = detail.detail
    }
}

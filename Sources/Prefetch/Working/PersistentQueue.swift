internal import Redis
internal import Threading

/// The queue as a running worker calls it: whatever becomes of Redis, each call is made until it succeeds.
final class PersistentQueue: Sendable {
    /// Throws at once where Redis is away.
    let queue: PrefetchQueue
    private let shutdown: Shutdown
    private let complaints: Complaints
    private let onEvent: @Sendable (PrefetchWorker.Event) -> Void
    /// Whether Redis does as it is told.
    private let outage = Locked(RedisOutage())

    init(
        _ queue: PrefetchQueue, shutdown: Shutdown, complaints: Complaints,
        onEvent: @escaping @Sendable (PrefetchWorker.Event) -> Void
    ) {
        self.queue = queue
        self.shutdown = shutdown
        self.complaints = complaints
        self.onEvent = onEvent
    }

    /// A call to Redis that is made until it succeeds: a worker that runs never ends because Redis is away, full, loading, read-only or
    /// refuses it. Nil where the worker leaves (`end` is open, by default ``Shutdown/drained``), and where Redis takes the command itself
    /// for wrong, as with a key of another type: then others may be all right.
    @discardableResult
    nonisolated(nonsending) func persist<Success: Sendable>(
        until end: Latch? = nil, _ body: nonisolated(nonsending) (PrefetchQueue) async throws(RedisError) -> Success
    ) async -> Success? {
        let end = end ?? shutdown.drained
        var ceiling = Duration.milliseconds(50)
        while true {
            do throws(RedisError) {
                let value = try await body(queue)
                answers()
                return value
            } catch {
                guard error.code != .interrupted, !Task.isCancelled, !end.isOpen else { return nil }
                if error.code == .reply {
                    complaints.say(error.message)
                    await pause(.seconds(1), orUntil: end)
                    return nil
                }
                fails(error)
                await pause(ceiling, orUntil: end)
                ceiling = min(ceiling * 2, .seconds(5))
            }
        }
    }

    /// A call before the worker is one: what waiting cannot heal ends it. Nil where it is told to leave first.
    ///
    /// * `waitsOutRefusal`: so is an error reply that none of the known ones is; not one that says of a key that it is of a wrong type, which
    ///   a person has to mend.
    nonisolated(nonsending) func first<Success: Sendable>(
        waitsOutRefusal: Bool = false,
        _ body: nonisolated(nonsending) (PrefetchQueue) async throws(RedisError) -> Success
    ) async throws(PrefetchError) -> Success? {
        var ceiling = Duration.milliseconds(50)
        while !shutdown.draining.isOpen {
            do throws(RedisError) {
                let value = try await body(queue)
                answers()
                return value
            } catch {
                let isRefusal = waitsOutRefusal && error.code == .reply && error.replyCode != "WRONGTYPE"
                guard error.isTransient || error.code == .outOfMemory || isRefusal else { throw PrefetchError(error) }
                if isRefusal {
                    complaints.say("Redis refuses to register a worker (\(error.message)); asked again until it does")
                } else {
                    fails(error)
                }
                await pause(ceiling, orUntil: shutdown.draining)
                ceiling = min(ceiling * 2, .seconds(5))
            }
        }
        return nil
    }

    /// Says once that Redis does not do as it is told. A connection that was cut is there again at once, and nobody has to know.
    func fails(_ error: RedisError) {
        if case .away(let reason) = outage.withLock({ $0.fails(error) }) { onEvent(.redisAway(reason)) }
    }

    /// Says that Redis is back, where it was said to be away.
    func answers() {
        if case .back = outage.withLock({ $0.answers() }) { onEvent(.redisBack) }
    }

    /// Up to `ceiling`, so that a thousand workers do not come back in one instant.
    private nonisolated(nonsending) func pause(_ ceiling: Duration, orUntil end: Latch) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Task.sleep(for: ceiling * Double.random(in: 0.1...1)) }
            group.addTask { await end.wait() }
            await group.next()
            group.cancelAll()
        }
    }
}

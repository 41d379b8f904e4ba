internal import Redis
internal import Threading

/// The queue for a running worker: each call is repeated until it succeeds, whatever happens to Redis.
final class PersistentQueue: Sendable {
    /// Throws at once if Redis is unreachable.
    let queue: PrefetchQueue
    /// How long calls take.
    let calls = RedisCalls()
    private let shutdown: Shutdown
    private let warningLog: WorkerWarnings
    private let onEvent: @Sendable (PrefetchWorker.Event) -> Void
    private let outage = Locked(RedisOutage())
    private let hasWrongType = Locked(false)

    init(
        _ queue: PrefetchQueue, shutdown: Shutdown, warningLog: WorkerWarnings,
        onEvent: @escaping @Sendable (PrefetchWorker.Event) -> Void
    ) {
        self.queue = queue
        self.shutdown = shutdown
        self.warningLog = warningLog
        self.onEvent = onEvent
    }

    /// Repeats a call until it succeeds: a running worker never ends because Redis is unreachable, full, loading, read-only or refuses it.
    /// Nil if the worker leaves (`end` is open, by default ``Shutdown/drained``), and if Redis rejects the command itself, as with a key of
    /// another type: other commands may work.
    @discardableResult
    nonisolated(nonsending) func persist<Success: Sendable>(
        until end: Latch? = nil, _ body: nonisolated(nonsending) (PrefetchQueue) async throws(RedisError) -> Success
    ) async -> Success? {
        let end = end ?? shutdown.drained
        let call = calls.begin()
        defer { calls.end(call) }
        var ceiling = Duration.milliseconds(50)
        while true {
            do throws(RedisError) {
                let value = try await body(queue)
                answers()
                return value
            } catch {
                guard error.code != .interrupted, !Task.isCancelled, !end.isOpen else { return nil }
                if error.code == .reply {
                    note(error)
                    await pause(.seconds(1), orUntil: end)
                    return nil
                }
                fails(error)
                await pause(ceiling, orUntil: end)
                ceiling = min(ceiling * 2, .seconds(5))
            }
        }
    }

    /// A call before the worker is registered: errors that waiting cannot heal are thrown. Nil if the worker has to leave first.
    /// * `retriesUnknownErrors`: also waits after unknown error replies, but not after one about a key's wrong type.
    nonisolated(nonsending) func first<Success: Sendable>(
        retriesUnknownErrors: Bool = false,
        _ body: nonisolated(nonsending) (PrefetchQueue) async throws(RedisError) -> Success
    ) async throws(PrefetchError) -> Success? {
        var (ceiling, hasHealed) = (Duration.milliseconds(50), false)
        while !shutdown.draining.isOpen {
            do throws(RedisError) {
                let value = try await body(queue)
                answers()
                return value
            } catch {
                if error.replyCode == "WRONGTYPE", !hasHealed {
                    // No other worker may be there to do it.
                    hasHealed = true
                    if let lines = try? await queue.healing.heal(every: 1000), !lines.isEmpty {
                        for line in lines { warningLog.say("healed the queue: \(line)") }
                        continue
                    }
                }
                let isRefusal = retriesUnknownErrors && error.code == .reply && error.replyCode != "WRONGTYPE"
                guard error.isTransient || error.code == .outOfMemory || isRefusal else { throw PrefetchError(error) }
                if isRefusal {
                    warningLog.say("Redis refuses to register a worker (\(error.message)); asked again until it does")
                } else {
                    fails(error)
                }
                await pause(ceiling, orUntil: shutdown.draining)
                ceiling = min(ceiling * 2, .seconds(5))
            }
        }
        return nil
    }

    /// Reports that Redis rejected a command.
    func note(_ error: RedisError) {
        warningLog.say(error.message)
        if error.replyCode == "WRONGTYPE" { hasWrongType.withLock { $0 = true } }
    }

    /// Whether a command was rejected because of a key's type since the last call.
    func takeWrongType() -> Bool {
        hasWrongType.withLock { known in
            defer { known = false }
            return known
        }
    }

    /// Reports an outage. A single cut connection recovers at once and is not reported.
    func fails(_ error: RedisError) {
        if case .away(let reason) = outage.withLock({ $0.fails(error) }) { onEvent(.redisAway(reason)) }
    }

    func answers() {
        if case .back = outage.withLock({ $0.answers() }) { onEvent(.redisBack) }
    }

    /// Random up to `ceiling`, so that a thousand workers do not reconnect in one instant.
    private nonisolated(nonsending) func pause(_ ceiling: Duration, orUntil end: Latch) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Task.sleep(for: ceiling * Double.random(in: 0.1...1)) }
            group.addTask { await end.wait() }
            await group.next()
            group.cancelAll()
        }
    }
}

internal import Redis
internal import Threading

extension PrefetchWorker {
    /// A call to Redis that is made until it succeeds: a worker that runs never ends because Redis is away, full, loading, read-only or
    /// refuses it. Nil where the worker leaves (`end` is open, by default ``drained``), and where Redis takes the command itself for
    /// wrong, as with a key of another type: then others may be all right.
    @discardableResult
    func persist<Success: Sendable>(
        until end: Latch? = nil, _ body: () async throws(RedisError) -> Success
    ) async -> Success? {
        let end = end ?? drained
        var ceiling = Duration.milliseconds(50)
        while true {
            do throws(RedisError) {
                let value = try await body()
                redisAnswers()
                return value
            } catch {
                guard error.code != .interrupted, !Task.isCancelled, !end.isOpen else { return nil }
                if error.code == .reply {
                    complaints.say(error.message)
                    await pause(.seconds(1), orUntil: end)
                    return nil
                }
                redisFails(error)
                await pause(ceiling, orUntil: end)
                ceiling = min(ceiling * 2, .seconds(5))
            }
        }
    }

    /// Says once that Redis does not do as it is told. A connection that was cut is there again at once, and nobody has to know.
    func redisFails(_ error: RedisError) {
        if case .away(let reason) = outage.fails(error) { configuration.onEvent(.redisAway(reason)) }
    }

    /// Says that Redis is back, where it was said to be away.
    func redisAnswers() {
        if case .back = outage.answers() { configuration.onEvent(.redisBack) }
    }

    /// Up to `ceiling`, so that a thousand workers do not come back in one instant.
    func pause(_ ceiling: Duration, orUntil end: Latch) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Task.sleep(for: ceiling * Double.random(in: 0.1...1)) }
            group.addTask { await end.wait() }
            await group.next()
            group.cancelAll()
        }
    }
}

package import Redis

/// Runs the scripts and commands of one queue over one connection. A value; it holds no state of its own.
///
/// A call waits while Redis is away or says that it cannot now, up to ``patience``, and sends the script again: every script may be sent again
/// after a lost reply.
package struct ScriptRunner: Sendable {
    /// The connection all calls use.
    package let connection: RedisConnection
    /// The names of the queue's keys.
    package let keys: PrefetchKeys
    /// How long a call waits for a Redis that is away; nil = until the task is cancelled.
    package var patience: Duration?
    /// How long a call waits for a Redis that refuses it (NOAUTH, WRONGPASS, NOPERM); not at all by default, because a wrong password
    /// stays wrong. For whoever was let in before: then somebody is changing the password, and soon has.
    package var forbearance: Duration = .zero
    /// Says that Redis is away, where somebody wants to hear of it.
    private var teller: RedisOutageTeller?
    /// Hears what a call came upon beside what it was for.
    package var notice: @Sendable (PrefetchQueue.Notice) -> Void = { _ in }

    package init(connection: RedisConnection, keys: PrefetchKeys, patience: Duration?) {
        self.connection = connection
        self.keys = keys
        self.patience = patience
    }

    /// The same for whoever has time: its calls wait for a Redis that is away, is loading or takes no writes until the task is cancelled, and
    /// `tell` hears of it.
    func waiting(_ tell: @escaping @Sendable (RedisOutage.Notice) -> Void) -> ScriptRunner {
        var runner = self
        runner.patience = nil
        runner.teller = RedisOutageTeller(tell)
        return runner
    }

    /// One script call with the root key.
    func run(_ script: RedisScript, _ arguments: [RedisArgument]) async throws(RedisError) -> RedisValue {
        try await patiently { () async throws(RedisError) in
            try await connection.run(script, keys: [RedisArgument(keys.root)], arguments: arguments)
        }
    }

    /// Commands in one round trip, for reading. Repeated as a whole where a reply says that Redis cannot now.
    package func read(_ commands: [[RedisArgument]]) async throws(RedisError) -> [RedisValue] {
        try await patiently { () async throws(RedisError) in
            let replies = try Self.withoutTransient(try await connection.pipeline(commands))
            guard forbearance > .zero else { return replies }
            for reply in replies { if let error = reply.error?.asError, error.code == .refused { throw error } }
            return replies
        }
    }

    /// Two commands whose replies, the first of several, are the time of the queue's clock.
    package var clockCommands: [[RedisArgument]] { [["TIME"], ["HGET", RedisArgument(keys.clock), "ahead"]] }

    /// Milliseconds since 1970 by the queue's clock, from the replies to ``clockCommands``: what times in Redis are to be compared with.
    package static func time(_ replies: [RedisValue]) throws(RedisError) -> Int {
        (try replies[0].get().milliseconds ?? 0) + (replies[1].count ?? 0)
    }

    /// The replies, or the first of their errors that waiting can heal: a node of a cluster that is losing its slot refuses one command
    /// and not the next.
    static func withoutTransient(_ replies: [RedisValue]) throws(RedisError) -> [RedisValue] {
        for case .error(let reply) in replies {
            let error = reply.asError
            if error.isTransient { throw error }
        }
        return replies
    }

    /// Repeats an idempotent call while Redis is away, up to ``patience``, or refuses it, up to ``forbearance``.
    package nonisolated(nonsending) func patiently<Success>(
        _ body: nonisolated(nonsending) () async throws(RedisError) -> Success
    ) async throws(RedisError) -> Success {
        let (began, forbearance, teller) = (ContinuousClock.now, forbearance, teller)
        let value = try await withRetry(
            until: patience.map { .now + max($0, forbearance) },
            canHeal: { error in
                let waited = ContinuousClock.now - began
                if error.code == .refused { return waited < forbearance }
                return error.isTransient && patience.map { forbearance == .zero || waited < $0 } ?? true
            }, onRetry: { error, _ in teller?.fails(error) }, body)
        teller?.answers()
        return value
    }
}

package import Redis

/// Runs the scripts and commands of one queue over one connection. A value without state of its own.
///
/// While Redis is unreachable or not ready, a call waits up to ``waitLimit`` and sends the script again: every script may be sent again
/// after a lost reply.
package struct ScriptRunner: Sendable {
    package let connection: RedisConnection
    package let keys: PrefetchKeys
    /// Timeout of a call while Redis is unreachable; nil = until the task is cancelled.
    package var waitLimit: Duration?
    /// Timeout of a call while Redis refuses it (NOAUTH, WRONGPASS, NOPERM); zero by default, because a wrong password stays wrong. For
    /// callers that had access before: the password may be in the middle of a change.
    package var refusalTimeout: Duration = .zero
    private var outageReporter: RedisOutageReporter?
    /// Receives problems that a call found besides its result.
    package var notice: @Sendable (PrefetchQueue.Notice) -> Void = { _ in }

    package init(connection: RedisConnection, keys: PrefetchKeys, waitLimit: Duration?) {
        self.connection = connection
        self.keys = keys
        self.waitLimit = waitLimit
    }

    /// A copy whose calls wait, until cancelled, while Redis is unreachable, loading or takes no writes, and report that to `tell`.
    func waiting(_ tell: @escaping @Sendable (RedisOutage.Notice) -> Void) -> ScriptRunner {
        var runner = self
        runner.waitLimit = nil
        runner.outageReporter = RedisOutageReporter(tell)
        return runner
    }

    func run(_ script: RedisScript, _ arguments: [RedisArgument]) async throws(RedisError) -> RedisValue {
        try await repeating { () async throws(RedisError) in
            try await connection.run(script, keys: [RedisArgument(keys.root)], arguments: arguments)
        }
    }

    /// Reads in one round trip. Repeated as a whole if a reply says that Redis is not ready.
    package func read(_ commands: [[RedisArgument]]) async throws(RedisError) -> [RedisValue] {
        try await repeating { () async throws(RedisError) in
            let replies = try Self.withoutTransient(try await connection.pipeline(commands))
            guard refusalTimeout > .zero else { return replies }
            for reply in replies { if let error = reply.error?.asError, error.code == .refused { throw error } }
            return replies
        }
    }

    /// Two commands whose replies, as the first ones, give the time of the queue's clock.
    package var clockCommands: [[RedisArgument]] { [["TIME"], ["HGET", RedisArgument(keys.clock), "ahead"]] }

    /// Milliseconds since 1970 by the queue's clock, from the replies to ``clockCommands``: comparable with times in Redis.
    package static func time(_ replies: [RedisValue]) throws(RedisError) -> Int {
        (try replies[0].get().milliseconds ?? 0) + (replies[1].count ?? 0)
    }

    /// The replies, or the first transient error among them: a cluster node that is losing its slot refuses one command and not the next.
    static func withoutTransient(_ replies: [RedisValue]) throws(RedisError) -> [RedisValue] {
        for case .error(let reply) in replies {
            let error = reply.asError
            if error.isTransient { throw error }
        }
        return replies
    }

    /// Repeats an idempotent call while Redis is unreachable, up to ``waitLimit``, or refuses it, up to ``refusalTimeout``.
    package nonisolated(nonsending) func repeating<Success>(
        _ body: nonisolated(nonsending) () async throws(RedisError) -> Success
    ) async throws(RedisError) -> Success {
        let (began, refusalTimeout, outageReporter) = (ContinuousClock.now, refusalTimeout, outageReporter)
        let value = try await withRetry(
            until: waitLimit.map { .now + max($0, refusalTimeout) },
            isRetryable: { error in
                let waited = ContinuousClock.now - began
                if error.code == .refused { return waited < refusalTimeout }
                return error.isTransient && waitLimit.map { refusalTimeout == .zero || waited < $0 } ?? true
            }, onRetry: { error, _ in outageReporter?.fails(error) }, body)
        outageReporter?.answers()
        return value
    }
}

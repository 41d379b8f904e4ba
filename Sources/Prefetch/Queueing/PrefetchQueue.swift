package import Redis

/// The queue in Redis as functions: every change of state is one Lua script, and every script may be sent again after a lost reply.
///
/// A value over one connection; it holds no state of its own. What is in Redis: `docs/PROTOCOL.md`.
///
/// A call waits while Redis is away or says that it cannot now, up to ``patience``, and sends the script again.
package struct PrefetchQueue: Sendable {
    /// The connection all calls use.
    package let connection: RedisConnection
    /// How long a call waits for a Redis that is away; nil = until the task is cancelled.
    package var patience: Duration?
    /// The names of this queue's keys.
    package let keys: PrefetchKeys

    /// * `name`: 1 to 64 of `A-Z a-z 0-9 _ -`; it becomes the hash tag of every key.
    package init(connection: RedisConnection, name: String = "default", patience: Duration? = .seconds(10)) {
        self.connection = connection
        self.patience = patience
        keys = PrefetchKeys(queue: name)
    }

    /// The same queue over another connection, or with another patience.
    init(connection: RedisConnection, keys: PrefetchKeys, patience: Duration?) {
        self.connection = connection
        self.patience = patience
        self.keys = keys
    }

    /// Whether a text may name a queue.
    package static func isValidName(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    /// Whether a text may name a batch: as a queue, and dots inside.
    package static func isValidBatchID(_ id: String) -> Bool {
        isValidName(id.replacing(".", with: "-")) && !id.hasPrefix(".")
    }

    /// A script with the shared prelude. `allowsOOM`: the script drains the queue, so a full Redis must still run it; the ones
    /// that fill it are refused then, which is the back-pressure.
    static func script(_ name: String, allowsOOM: Bool = true, _ body: String) -> RedisScript {
        RedisScript(
            name: name, source: (allowsOOM ? "#!lua flags=allow-oom\n" : "#!lua\n") + PrefetchKeys.prelude + "\n" + body
        )
    }

    /// One script call with the root key.
    func run(_ script: RedisScript, _ arguments: [RedisArgument]) async throws(RedisError) -> RedisValue {
        try await patiently { () async throws(RedisError) in
            try await connection.run(script, keys: [RedisArgument(keys.root)], arguments: arguments)
        }
    }

    /// Commands in one round trip, for reading.
    func read(_ commands: [[RedisArgument]]) async throws(RedisError) -> [RedisValue] {
        try await patiently { () async throws(RedisError) in
            let values = try await connection.pipeline(commands)
            // A server that reads its data answers every command with an error, and that it cannot yet is no answer.
            for value in values { if let error = value.error?.asError, error.isTransient { throw error } }
            return values
        }
    }

    /// Repeats an idempotent call while Redis is away, up to ``patience``.
    nonisolated(nonsending) func patiently<Success>(
        _ body: nonisolated(nonsending) () async throws(RedisError) -> Success
    ) async throws(RedisError) -> Success {
        try await withRetry(until: patience.map { .now + $0 }, body)
    }
}

package import Redis

/// The queue in Redis: every change of state is one Lua script, and every script may be sent again after a lost reply.
///
/// A value over one connection, without state of its own. Operations are grouped by role: `queue.batches.open(…)`, `queue.jobs.claim(…)`.
/// `docs/PROTOCOL.md` describes the keys in Redis.
package struct PrefetchQueue: Sendable {
    package var redis: ScriptRunner

    /// A problem of one batch that does not affect the others.
    package enum Notice: Sendable, Equatable {
        /// An invalid element of its job list, moved to the dead-letter list. With its first bytes.
        case buried(batch: String, head: [UInt8])
        /// It cannot run: one of its keys is invalid.
        case broken(batch: String, message: String)
        /// Redis refused one of its reports for an unknown reason.
        case refused(batch: String, message: String)
    }

    /// * `name`: 1 to 64 of `A-Z a-z 0-9 _ -`; it becomes the hash tag of every key.
    /// * `waitLimit`: see ``ScriptRunner/waitLimit``.
    package init(connection: RedisConnection, name: String = "default", waitLimit: Duration? = .seconds(10)) {
        self.init(ScriptRunner(connection: connection, keys: PrefetchKeys(queue: name), waitLimit: waitLimit))
    }

    /// A queue with its own connection, which follows the queue through a Redis Cluster.
    /// * `client`: name in CLIENT LIST.
    /// * `name`: 1 to 64 of `A-Z a-z 0-9 _ -`.
    /// * `onAddresses`: called with Redis' addresses, see `RedisConnection`.
    package init(
        _ redis: RedisConfiguration, client: String, name: String = "default", waitLimit: Duration? = .seconds(10),
        onAddresses: @escaping @Sendable (Set<RedisAddress>) -> Void = { _ in }
    ) {
        self.init(
            connection: RedisConnection(
                redis, name: client, following: PrefetchKeys(queue: name).root, onAddresses: onAddresses),
            name: name, waitLimit: waitLimit)
    }

    package init(_ redis: ScriptRunner) { self.redis = redis }

    package var connection: RedisConnection { redis.connection }
    package var keys: PrefetchKeys { redis.keys }

    /// The queue with calls that wait for Redis without a timeout, see ``ScriptRunner/waiting(_:)``.
    package func waiting(_ tell: @escaping @Sendable (RedisOutage.Notice) -> Void) -> PrefetchQueue {
        PrefetchQueue(redis.waiting(tell))
    }

    // MARK: Roles

    package var batches: QueueBatches { QueueBatches(redis) }
    package var catalog: QueueCatalog { QueueCatalog(redis) }
    package var jobs: QueueJobs { QueueJobs(redis) }
    package var reports: QueueReports { QueueReports(redis) }
    package var results: QueueResults { QueueResults(redis) }
    package var workers: QueueWorkers { QueueWorkers(redis) }
    package var hosts: QueueHosts { QueueHosts(redis) }
    package var failedURLs: Blacklist { Blacklist(redis) }
    package var control: QueueControl { QueueControl(redis) }
    package var shards: QueueShards { QueueShards(redis) }

    // MARK: Names and servers

    /// Checks whether this Redis can keep a queue; returns warnings.
    /// - Throws: `configuration` if it cannot.
    package func checkServer() async throws(RedisError) -> [String] {
        try await redis.repeating { () async throws(RedisError) in try await connection.serverFacts().check() }
    }

    package static func isValidName(_ name: String) -> Bool {
        PrefetchSettings.isName(name)
    }

    /// Valid as a queue name, with dots allowed except at the start.
    package static func isValidBatchID(_ id: String) -> Bool {
        PrefetchSettings.isBatchName(id)
    }
}

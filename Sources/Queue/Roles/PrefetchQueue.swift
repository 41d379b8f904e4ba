package import Redis

/// The queue in Redis: every change of state is one Lua script, and every script may be sent again after a lost reply.
///
/// A value over one connection; it holds no state of its own. What is in Redis: `docs/PROTOCOL.md`. What can be done with it is said by role:
/// `queue.batches.open(…)`, `queue.jobs.claim(…)`.
package struct PrefetchQueue: Sendable {
    /// What runs its scripts and commands.
    package var redis: ScriptRunner

    /// Something wrong with one batch, while the others go on.
    package enum Notice: Sendable, Equatable {
        /// An element of its job list was no job of it; it is on the list of the dead now. With its first bytes.
        case buried(batch: String, head: [UInt8])
        /// It cannot be worked on: a key of it is not what it must be.
        case broken(batch: String, message: String)
        /// Redis did not take a report of it, for a reason that is none of the known ones.
        case refused(batch: String, message: String)
    }

    /// * `name`: 1 to 64 of `A-Z a-z 0-9 _ -`; it becomes the hash tag of every key.
    /// * `patience`: as ``ScriptRunner/patience``.
    package init(connection: RedisConnection, name: String = "default", patience: Duration? = .seconds(10)) {
        self.init(ScriptRunner(connection: connection, keys: PrefetchKeys(queue: name), patience: patience))
    }

    /// A queue over a connection of its own, which follows the queue through a Redis Cluster.
    /// * `client`: what CLIENT LIST shows.
    /// * `name`: 1 to 64 of `A-Z a-z 0-9 _ -`.
    /// * `onPlaces`: hears where Redis listens, as of `RedisConnection`.
    package init(
        _ redis: RedisConfiguration, client: String, name: String = "default", patience: Duration? = .seconds(10),
        onPlaces: @escaping @Sendable (Set<RedisPlace>) -> Void = { _ in }
    ) {
        self.init(
            connection: RedisConnection(
                redis, name: client, following: PrefetchKeys(queue: name).root, onPlaces: onPlaces),
            name: name, patience: patience)
    }

    package init(_ redis: ScriptRunner) { self.redis = redis }

    /// The connection all calls use.
    package var connection: RedisConnection { redis.connection }
    /// The names of this queue's keys.
    package var keys: PrefetchKeys { redis.keys }

    /// The same queue for whoever has time; see ``ScriptRunner/patience``.
    package func waiting(_ tell: @escaping @Sendable (RedisOutage.Notice) -> Void) -> PrefetchQueue {
        PrefetchQueue(redis.waiting(tell))
    }

    // MARK: Roles

    package var batches: QueueBatches { QueueBatches(redis) }
    package var lists: QueueLists { QueueLists(redis) }
    package var catalog: QueueCatalog { QueueCatalog(redis) }
    package var jobs: QueueJobs { QueueJobs(redis) }
    package var reports: QueueReports { QueueReports(redis) }
    package var results: QueueResults { QueueResults(redis) }
    package var workers: QueueWorkers { QueueWorkers(redis) }
    package var hosts: QueueHosts { QueueHosts(redis) }
    package var failedURLs: FailedURLList { FailedURLList(redis) }
    package var control: QueueControl { QueueControl(redis) }
    package var mending: QueueMending { QueueMending(redis) }

    // MARK: Names and servers

    /// Looks whether this Redis can keep a queue; returns what a person should know of it.
    /// - Throws: `configuration` where it cannot.
    package func checkServer() async throws(RedisError) -> [String] {
        try await redis.patiently { () async throws(RedisError) in try await connection.serverFacts().check() }
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
}

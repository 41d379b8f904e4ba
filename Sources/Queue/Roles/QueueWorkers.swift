package import Redis

/// The registered workers and their leases.
package struct QueueWorkers: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    private static let join = QueueScript.script(PackageResources.JOIN_lua)

    /// Registers a worker under a name that no other has; false where it is taken.
    package func join(worker: String, lease: Int, about: [(String, String)]) async throws(RedisError) -> Bool {
        var arguments: [RedisArgument] = [RedisArgument(worker), RedisArgument(lease)]
        for (name, value) in about { arguments += [RedisArgument(name), RedisArgument(value)] }
        return try await redis.run(Self.join, arguments).int == 1
    }

    private static let beat = QueueScript.script(PackageResources.BEAT_lua)

    /// What a worker is told with each sign of life.
    package struct WorkerOrders: Sendable, Equatable {
        /// A batch of its jobs.
        package struct Batch: Sendable, Equatable {
            /// What became of it: `running`, `done`, `cancelled`, or `gone`.
            package var state: String
            /// Whether nothing more of it is to begin.
            package var isPaused = false
        }

        /// Whether it is to claim nothing, and to begin nothing.
        package var isWorkerPaused = false
        /// Whether nobody is.
        package var isQueuePaused = false
        /// Transfers in flight, said to it alone, and said to all.
        package var ownConcurrency: Int?, queueConcurrency: Int?
        /// How often what is known of hosts has changed; nil: nothing is known.
        package var hostsVersion: Int?
        /// Whether there may be something for REAP.
        package var mayReap = false
        /// How many failed URLs have gone since there are more than their list may have; nil: none.
        package var unlisted: Int?
        /// The batches it asked about, in the same order.
        package var batches: [Batch] = []

        package init(
            isWorkerPaused: Bool = false, isQueuePaused: Bool = false, ownConcurrency: Int? = nil,
            queueConcurrency: Int? = nil, hostsVersion: Int? = nil, mayReap: Bool = false, unlisted: Int? = nil,
            batches: [Batch] = []
        ) {
            self.isWorkerPaused = isWorkerPaused
            self.isQueuePaused = isQueuePaused
            self.ownConcurrency = ownConcurrency
            self.queueConcurrency = queueConcurrency
            self.hostsVersion = hostsVersion
            self.mayReap = mayReap
            self.unlisted = unlisted
            self.batches = batches
        }
    }

    /// What a worker has claimed, as far as it knows.
    package struct KnownClaims: Sendable {
        /// The number of its last claim whose reply it has read.
        package var sequence: Int
        /// Names of claims.
        package var names: [String]

        package init(sequence: Int, names: [String]) {
            (self.sequence, self.names) = (sequence, names)
        }
    }

    /// Renews a lease. Returns what the worker is to do, and what became of the batches it asks about; nil where it is no longer
    /// registered.
    /// * `claims`: what it has claimed; what else stands under its name at two heartbeats in a row goes back. nil: it does not say.
    package func beat(
        worker: String, lease: Int, trouble: Bool, batches: [BatchIdentity], claims: KnownClaims? = nil,
        about: [(String, String)]
    ) async throws(RedisError) -> WorkerOrders? {
        var arguments: [RedisArgument] = [
            RedisArgument(worker), RedisArgument(lease), trouble ? "1" : "0", RedisArgument(batches.count),
        ]
        arguments += batches.map { RedisArgument($0.text) }
        arguments += [RedisArgument(claims.map { String($0.sequence) } ?? ""), RedisArgument(claims?.names.count ?? 0)]
        arguments += (claims?.names ?? []).map { RedisArgument($0) }
        for (name, value) in about { arguments += [RedisArgument(name), RedisArgument(value)] }
        let reply = try await redis.run(Self.beat, arguments).array ?? []
        guard reply.first?.string == "OK", reply.count > 1 else { return nil }
        let named = reply[1].fields ?? [:]
        func number(_ name: String) -> Int? {
            named[name]?.int.flatMap { QueueControl.concurrencyRange.contains($0) ? $0 : nil }
        }
        return WorkerOrders(
            isWorkerPaused: named["paused"]?.string == "1", isQueuePaused: named["queue_paused"] != nil,
            ownConcurrency: number("wanted"), queueConcurrency: number("concurrency"),
            hostsVersion: named["hosts"]?.int, mayReap: named["reap"] != nil, unlisted: named["unlisted"]?.count,
            batches: reply.dropFirst(2).map { value in
                let words = value.array ?? []
                return WorkerOrders.Batch(
                    state: words.first?.string ?? "gone", isPaused: words.last?.string == "1")
            })
    }

    /// What a look for dead workers found.
    package enum ReapResult: Sendable, Equatable {
        /// Nobody's lease has run out, or nobody may be reaped now.
        case nobody
        /// So many jobs of this worker went back to their lists.
        case reaped(worker: String, jobs: Int)
    }

    private static let reap = QueueScript.script(PackageResources.REAP_lua)

    /// Takes the jobs of one dead worker back.
    /// * `worker`: nil: whose lease ran out first. Named: this one, whatever its lease says.
    package func reap(worker: String? = nil, most: Int = 64) async throws(RedisError) -> ReapResult {
        let reply =
            try await redis.run(
                Self.reap, [RedisArgument(worker ?? ""), RedisArgument(most)]
            ).array ?? []
        guard reply.count == 2, let name = reply[0].string else { return .nobody }
        return .reaped(worker: name, jobs: reply[1].int ?? 0)
    }

    /// The registered workers, whose lease ends first in front.
    package func names() async throws(RedisError) -> [String] {
        (try await redis.read([["ZRANGE", RedisArgument(redis.keys.workers), "0", "-1"]])[0].get().array ?? [])
            .compactMap(\.string)
    }
}

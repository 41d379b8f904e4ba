package import Redis

package struct QueueWorkers: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    private static let join = QueueScript.script(PackageResources.JOIN_lua)

    /// Registers a worker; false if the name is taken.
    package func join(worker: String, lease: Int, about: [(String, String)]) async throws(RedisError) -> Bool {
        var arguments: [RedisArgument] = [RedisArgument(worker), RedisArgument(lease)]
        for (name, value) in about { arguments += [RedisArgument(name), RedisArgument(value)] }
        return try await redis.run(Self.join, arguments).int == 1
    }

    private static let beat = QueueScript.script(PackageResources.BEAT_lua)

    package struct WorkerSettings: Sendable, Equatable {
        package struct Batch: Sendable, Equatable {
            /// `running`, `done`, `cancelled`, or `gone`.
            package var state: String
            package var isPaused = false
            /// How often its settings were changed.
            package var changes = 0
        }

        /// Whether the worker may not claim or start anything.
        package var isWorkerPaused = false
        /// Whether no worker may.
        package var isQueuePaused = false
        /// Concurrent transfers set for this worker, and for all.
        package var ownConcurrency: ConcurrentDownloads?, queueConcurrency: ConcurrentDownloads?
        /// Number of changes of the host notes; nil: there are none.
        package var hostsVersion: Int?
        package var shouldReap = false
        /// Number of registered workers.
        package var workers = 1
        /// URLs removed from the failed list because of its limit; nil: none.
        package var unlisted: Int?
        /// The lowest priority of its batches, if it is the turn of a higher one; nil: it is not.
        package var above: PrefetchPriority?
        /// The batches of the request, in the same order.
        package var batches: [Batch] = []

        package init(
            isWorkerPaused: Bool = false, isQueuePaused: Bool = false, ownConcurrency: ConcurrentDownloads? = nil,
            queueConcurrency: ConcurrentDownloads? = nil, hostsVersion: Int? = nil, shouldReap: Bool = false,
            unlisted: Int? = nil, workers: Int = 1, above: PrefetchPriority? = nil, batches: [Batch] = []
        ) {
            self.isWorkerPaused = isWorkerPaused
            self.isQueuePaused = isQueuePaused
            self.ownConcurrency = ownConcurrency
            self.queueConcurrency = queueConcurrency
            self.hostsVersion = hostsVersion
            self.shouldReap = shouldReap
            self.unlisted = unlisted
            self.workers = workers
            self.above = above
            self.batches = batches
        }
    }

    package struct KnownClaims: Sendable {
        /// The number of the last claim whose reply it has read.
        package var sequence: Int
        package var names: [String]

        package init(sequence: Int, names: [String]) {
            (self.sequence, self.names) = (sequence, names)
        }
    }

    /// Renews a lease. Returns settings for the worker and the states of its batches; nil if it is not registered any more.
    /// * `claims`: other claims under its name go back after two heartbeats. nil: not reported.
    package func beat(
        worker: String, lease: Int, trouble: Bool, batches: [BatchIdentity], claims: KnownClaims? = nil,
        about: [(String, String)]
    ) async throws(RedisError) -> WorkerSettings? {
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
        func concurrency(_ name: String) -> ConcurrentDownloads? { QueueControl.concurrency(named[name]?.string) }
        return WorkerSettings(
            isWorkerPaused: named["paused"]?.string == "1", isQueuePaused: named["queue_paused"] != nil,
            ownConcurrency: concurrency("wanted"), queueConcurrency: concurrency("concurrency"),
            hostsVersion: named["hosts"]?.int, shouldReap: named["reap"] != nil, unlisted: named["unlisted"]?.count,
            workers: named["workers"]?.count ?? 1,
            above: named["above"]?.string.flatMap(PrefetchPriority.init(rawValue:)),
            batches: reply.dropFirst(2).map { value in
                let words = value.array ?? []
                return WorkerSettings.Batch(
                    state: words.first?.string ?? "gone", isPaused: words.count > 1 && words[1].string == "1",
                    changes: words.count > 2 ? words[2].count ?? 0 : 0)
            })
    }

    package enum ReapResult: Sendable, Equatable {
        /// No lease has expired, or reaping is on hold.
        case nobody
        /// Number of jobs of this worker that went back to their lists.
        case reaped(worker: String, jobs: Int)
    }

    private static let reap = QueueScript.script(PackageResources.REAP_lua)

    /// Returns the jobs of one lost worker to their lists.
    /// * `worker`: nil: the one whose lease expired first; otherwise this one, whatever its lease.
    /// * `areBlamed`: whether the jobs count its death.
    package func reap(
        worker: String? = nil, most: Int = 64, areBlamed: Bool = true
    ) async throws(RedisError) -> ReapResult {
        let reply =
            try await redis.run(
                Self.reap, [RedisArgument(worker ?? ""), RedisArgument(most), areBlamed ? "" : "1"]
            ).array ?? []
        guard reply.count == 2, let name = reply[0].string else { return .nobody }
        return .reaped(worker: name, jobs: reply[1].int ?? 0)
    }

    /// The registered workers, earliest end of lease first.
    package func names() async throws(RedisError) -> [String] {
        (try await redis.read([["ZRANGE", RedisArgument(redis.keys.workers), "0", "-1"]])[0].get().array ?? [])
            .compactMap(\.string)
    }
}

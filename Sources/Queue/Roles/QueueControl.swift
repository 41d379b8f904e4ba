package import Redis

/// Control commands for a queue, a batch or a worker.
package struct QueueControl: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    package enum PauseTarget: Sendable, Equatable {
        case queue
        case batch(String)
        case worker(String)

        fileprivate var arguments: [RedisArgument] {
            switch self {
            case .queue: ["queue", ""]
            case .batch(let id): ["batch", RedisArgument(id)]
            case .worker(let name): ["worker", RedisArgument(name)]
            }
        }
    }

    package enum PauseResult: Sendable, Equatable {
        /// `isNew`: whether this call changed it.
        case done(isNew: Bool)
        case over(String)
        /// Redis has no such batch, or no such worker is registered.
        case gone
    }

    private static let pause = QueueScript.script(PackageResources.PAUSE_lua)

    package func pause(_ target: PauseTarget) async throws(RedisError) -> PauseResult {
        Self.pauseResult(try await redis.run(Self.pause, target.arguments))
    }

    private static let resume = QueueScript.script(PackageResources.RESUME_lua)

    package func resume(_ target: PauseTarget) async throws(RedisError) -> PauseResult {
        Self.pauseResult(try await redis.run(Self.resume, target.arguments))
    }

    private static func pauseResult(_ reply: RedisValue) -> PauseResult {
        let words = (reply.array ?? []).compactMap(\.string)
        return switch words.first {
        case "OK": .done(isNew: words.last == "1")
        case "OVER": .over(words.last ?? "")
        default: .gone
        }
    }

    package enum ChangeResult: Sendable, Equatable {
        case changed(from: BatchSettings, to: BatchSettings)
        case over(String)
        case gone
    }

    private static let change = QueueScript.script(PackageResources.CHANGE_lua)

    /// Changes settings of a running batch.
    /// * `words`: the new ones, by name.
    package func change(_ batch: String, _ words: [String: [String]]) async throws(RedisError) -> ChangeResult {
        while true {
            let fields =
                try await redis.read([["HGETALL", RedisArgument(redis.keys.batch(batch))]])[0].get().fields ?? [:]
            let before = BatchSettings(fields: fields)
            let now = before.taking(Set(words.keys), of: BatchSettings(words: words))
            var arguments = [RedisArgument(batch), RedisArgument(fields["options"]?.string ?? "")]
            for (name, value) in now.fields
            where fields[name]?.string != value || name == "limit" && words["deadline"] != nil {
                arguments += [RedisArgument(name), RedisArgument(value)]
            }
            let reply = try await redis.run(Self.change, arguments).array?.compactMap(\.string) ?? []
            switch reply.first {
            case "OK": return .changed(from: before, to: now)
            // Somebody else has changed them meanwhile.
            case "STALE": continue
            case "OVER": return .over(reply.last ?? "")
            default: return .gone
            }
        }
    }

    /// Ends what is open of a running batch before an index, and is not being transferred, as ``PrefetchOutcome/timeout``.
    package func leave(_ batch: String, before index: Int) async throws(RedisError) {
        _ = try await redis.run(
            Self.change, [RedisArgument(batch), "", "left_before", RedisArgument(String(index))])
    }

    package static let concurrencyRange = 1...4096

    /// A setting of concurrent transfers as Redis has it; nil: none, or one that cannot be used.
    package static func concurrency(_ text: String?) -> ConcurrentDownloads? {
        guard let setting = text.flatMap({ ConcurrentDownloads($0) }) else { return nil }
        return setting.count.map(concurrencyRange.contains) ?? true ? setting : nil
    }

    private static let concurrency = QueueScript.script(PackageResources.CONCURRENCY_lua)

    /// Sets the concurrent transfers of a worker, or for nil of all workers, including later ones.
    /// * `count`: `auto`, or in ``concurrencyRange``; nil: the setting for all, or the startup value.
    /// Returns the number of workers concerned; 0 for a worker that is not registered.
    package func setConcurrency(_ count: ConcurrentDownloads?, worker: String?) async throws(RedisError) -> Int {
        try await redis.run(
            Self.concurrency, [RedisArgument(worker ?? ""), RedisArgument(count?.description ?? "")]
        ).int ?? 0
    }

    package struct QueueSettings: Sendable, Equatable {
        package var isPaused = false
        /// Concurrent transfers per worker; nil: each worker's startup value.
        package var concurrency: ConcurrentDownloads?
    }
}

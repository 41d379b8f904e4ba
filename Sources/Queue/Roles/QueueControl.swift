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

    package struct Precedence: Sendable, Equatable {
        package var priority: PrefetchPriority
        package var order: PrefetchOrder
    }

    package enum PrecedenceResult: Sendable, Equatable {
        case changed(from: Precedence, to: Precedence)
        case over(String)
        case gone
    }

    private static let reprioritise = QueueScript.script(PackageResources.REPRIORITISE_lua)

    /// Changes priority or order of a running batch; nil: unchanged.
    package func reprioritise(
        batch: String, priority: PrefetchPriority?, order: PrefetchOrder?
    ) async throws(RedisError) -> PrecedenceResult {
        let reply = try await redis.run(
            Self.reprioritise,
            [RedisArgument(batch), RedisArgument(priority?.rawValue ?? ""), RedisArgument(order?.rawValue ?? "")])
        let words = (reply.array ?? []).compactMap(\.string)
        func precedence(_ start: Int) -> Precedence {
            Precedence(
                priority: PrefetchPriority(rawValue: words[start]) ?? .normal,
                order: PrefetchOrder(rawValue: words[start + 1]) ?? .fifo)
        }
        return switch words.first {
        case "OK" where words.count == 5: .changed(from: precedence(1), to: precedence(3))
        case "OVER": .over(words.last ?? "")
        default: .gone
        }
    }

    package static let concurrencyRange = 1...4096

    /// A setting of concurrent transfers as Redis has it; nil: none, or one that cannot be used.
    static func concurrency(_ text: String?) -> ConcurrentDownloads? {
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

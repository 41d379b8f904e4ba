package import Redis

/// What a person tells a queue, a batch or a worker on its way.
package struct QueueControl: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    /// What is paused and goes on.
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

    /// What came of it.
    package enum PauseResult: Sendable, Equatable {
        /// It is so now; whether it was not before.
        case done(isNew: Bool)
        /// The batch is over: `done` or `cancelled`.
        case over(String)
        /// Redis has no such batch, or no such worker is registered.
        case gone
    }

    private static let pause = QueueScript.script(PackageResources.PAUSE_lua)

    /// Pauses a batch, the queue or a worker.
    package func pause(_ target: PauseTarget) async throws(RedisError) -> PauseResult {
        Self.pauseResult(try await redis.run(Self.pause, target.arguments))
    }

    private static let resume = QueueScript.script(PackageResources.RESUME_lua)

    /// Lets a batch, the queue or a worker go on.
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

    /// Whose turn a batch has, and which of its jobs is next.
    package struct Precedence: Sendable, Equatable {
        package var priority: PrefetchPriority
        package var order: PrefetchOrder
    }

    /// What came of a change of precedence.
    package enum PrecedenceResult: Sendable, Equatable {
        /// What it was, and what it is now.
        case changed(from: Precedence, to: Precedence)
        /// The batch is over: `done` or `cancelled`.
        case over(String)
        /// Redis has no such batch.
        case gone
    }

    private static let reprioritise = QueueScript.script(PackageResources.REPRIORITISE_lua)

    /// Changes the priority of a running batch, its order, or both; nil: stays as it is.
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

    /// Transfers in flight a worker can be told to have.
    package static let concurrencyRange = 1...4096

    private static let concurrency = QueueScript.script(PackageResources.CONCURRENCY_lua)

    /// Sets how many transfers a worker has in flight, nil = all workers, those to come included.
    ///
    /// * `count`: of ``concurrencyRange``; nil: what was said to all, or what it was started with.
    /// Returns how many workers are told; 0 for a worker that is not registered.
    package func setConcurrency(_ count: Int?, worker: String?) async throws(RedisError) -> Int {
        try await redis.run(
            Self.concurrency, [RedisArgument(worker ?? ""), RedisArgument(count.map { String($0) } ?? "")]
        ).int ?? 0
    }

    /// What was said to all workers of a queue.
    package struct QueueOrders: Sendable, Equatable {
        /// Whether nothing is claimed of any batch.
        package var isPaused = false
        /// Transfers in flight a worker; nil: as each was started.
        package var concurrency: Int?
    }
}

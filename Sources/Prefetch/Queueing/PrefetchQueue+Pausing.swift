package import Redis

extension PrefetchQueue {
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

    private static let pause = script(PackageResources.PAUSE_lua)

    /// Pauses a batch, the queue or a worker.
    package func pause(_ target: PauseTarget) async throws(RedisError) -> PauseResult {
        Self.pauseResult(try await run(Self.pause, target.arguments))
    }

    private static let resume = script(PackageResources.RESUME_lua)

    /// Lets a batch, the queue or a worker go on.
    package func resume(_ target: PauseTarget) async throws(RedisError) -> PauseResult {
        Self.pauseResult(try await run(Self.resume, target.arguments))
    }

    private static func pauseResult(_ reply: RedisValue) -> PauseResult {
        let words = (reply.array ?? []).compactMap(\.string)
        return switch words.first {
        case "OK": .done(isNew: words.last == "1")
        case "OVER": .over(words.last ?? "")
        default: .gone
        }
    }
}

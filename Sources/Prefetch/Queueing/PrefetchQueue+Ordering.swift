package import Redis

extension PrefetchQueue {
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

    private static let reprioritise = script(PackageResources.REPRIORITISE_lua)

    /// Changes the priority of a running batch, its order, or both; nil: stays as it is.
    package func reprioritise(
        batch: String, priority: PrefetchPriority?, order: PrefetchOrder?
    ) async throws(RedisError) -> PrecedenceResult {
        let reply = try await run(
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
}

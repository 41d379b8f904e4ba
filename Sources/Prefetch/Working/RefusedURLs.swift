internal import Threading

/// URLs of a job that the worker's own rules refuse. While other workers are registered they end only if the rules of all of them refuse
/// them too; otherwise they are left to those.
final class RefusedURLs: Sendable {
    /// For so long the URLs of a job are asked about together.
    private static let interval = Duration.milliseconds(100)

    private let asking = Locked<[Int: Waiter<Bool>]>([:])

    /// Whether a URL ends; false: it is left to others.
    /// * `ask`: asks about all that have been refused meanwhile, by their positions; returns those that end.
    func ends(_ position: Int, ask: @Sendable (Set<Int>) async -> Set<Int>) async -> Bool {
        let waiter = Waiter<Bool>()
        let isFirst = asking.withLock { asking in
            asking[position] = waiter
            return asking.count == 1
        }
        if isFirst {
            try? await Task.sleep(for: Self.interval)
            let all = asking.withLock { asking in
                defer { asking = [:] }
                return asking
            }
            let ended = await ask(Set(all.keys))
            for (position, waiter) in all { waiter.answer(ended.contains(position)) }
        }
        return await waiter.wait(ifCancelled: false)
    }
}

internal import Redis

extension PrefetchQueue {
    /// A Redis with more keys is not looked through for the sake of a hint.
    private static let mostKeys = 10_000

    /// The name it was made with.
    package var queueName: String { String(keys.root.dropFirst("prefetch:{".count).dropLast()) }

    /// Other queues of the same Redis that have a batch of this name or beginning, sorted. Empty where looking would be expensive or is
    /// not allowed.
    func otherQueues(with name: String) async -> [String] {
        do throws(RedisError) {
            guard try await read([["DBSIZE"]])[0].get().int ?? .max <= Self.mostKeys else { return [] }
            let found = try await read([["SCAN", "0", "MATCH", "prefetch:{*}:batches", "COUNT", "\(Self.mostKeys)"]])
            let roots = (try found[0].get().array?.last?.array ?? []).compactMap(\.string)
                .map { String($0.dropLast(":batches".count)) }.filter { $0 != keys.root }
            guard !roots.isEmpty else { return [] }
            let batches = try await read(roots.map { ["ZRANGE", RedisArgument($0 + ":batches"), "0", "-1"] })
            return zip(roots, batches).filter { $1.array?.contains { $0.string?.hasPrefix(name) == true } == true }
                .map { String($0.0.dropFirst("prefetch:{".count).dropLast()) }.sorted()
        } catch {
            return []
        }
    }
}

package import Redis

/// What is mended of a queue as a whole, whichever batches it has.
extension PrefetchQueue {
    private static let putAside = script(PackageResources.ASIDE_lua)

    /// * `name`: what stands behind the root and a colon.
    func putAside(_ name: String, unlessType type: String) async throws(RedisError) -> Bool {
        try await run(Self.putAside, [RedisArgument(name), RedisArgument(type)]).int == 1
    }

    private static let reclaim = script(PackageResources.RECLAIM_lua)

    func reclaim(from worker: String) async throws(RedisError) -> Int {
        var count = 0
        while true {
            let reply = try await run(Self.reclaim, [RedisArgument(worker)]).array ?? []
            count += reply.first?.int ?? 0
            guard reply.last?.int == 1 else { return count }
        }
    }

    private static let rering = script(PackageResources.RERING_lua)

    /// Makes sets, lists, bell and slots agree with the batches; returns what did not.
    /// * `isDry`: nothing is changed.
    /// * `batches`: those that a pass over all keys has found.
    func rering(isDry: Bool, batches: [String]) async throws(RedisError) -> [String] {
        let listed = Set(try await listedBatches() ?? [])
        let others = batches.filter { !listed.contains($0) }
        return (try await run(Self.rering, [isDry ? "1" : ""] + others.map { RedisArgument($0) }).array ?? [])
            .compactMap(\.string)
    }

    /// What is on the list of the dead, newest first: the first bytes of each, and how many there are.
    package func dead(most: Int = 20) async throws(RedisError) -> (elements: [[UInt8]], count: Int) {
        let replies = try await read([
            ["LRANGE", RedisArgument(keys.dead), "0", RedisArgument(most - 1)], ["LLEN", RedisArgument(keys.dead)],
        ])
        return ((try replies[0].get().array ?? []).compactMap(\.bytes), try replies[1].get().int ?? 0)
    }
}

internal import Redis

extension PrefetchQueue {
    private static let keep = script(PackageResources.KEEP_lua)

    /// Gives back what Redis thinks the worker has, but for these claims; returns how many, nil where the worker is not registered.
    func keep(worker: String, jobs: [String]) async throws(RedisError) -> Int? {
        let count = try await run(Self.keep, [RedisArgument(worker)] + jobs.map { RedisArgument($0) }).int ?? -1
        return count < 0 ? nil : count
    }
}

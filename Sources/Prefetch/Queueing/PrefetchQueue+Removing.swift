package import Redis

extension PrefetchQueue {
    /// What became of a batch that was to go.
    package enum Removal: Sendable, Equatable {
        /// Nothing of it is left.
        case removed
        /// Redis had none of this id.
        case gone
        /// It runs: cancel it first.
        case running
        /// Its skipped lines are the entries of this batch: remove that first.
        case retriedBy(String)
    }

    private static let remove = script(PackageResources.REMOVE_lua)

    /// Removes a batch that is over.
    package func remove(batch: String) async throws(RedisError) -> Removal {
        let reply = try await run(Self.remove, [RedisArgument(batch)]).array ?? []
        switch reply.first?.string {
        case "OK": return .removed
        case "RUNNING": return .running
        case "RETRIED": return .retriedBy(reply.last?.string ?? "")
        default: return .gone
        }
    }
}

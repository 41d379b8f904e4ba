internal import Redis

// Roles that return types of this folder.
extension PrefetchQueue {
    package var views: QueueViews { QueueViews(redis) }
    package var workerRecords: WorkerRecords { WorkerRecords(redis) }
    package var openURLs: OpenURLs { OpenURLs(redis) }
    package var keySpace: KeySpace { KeySpace(redis) }
    package var healing: QueueHealing { QueueHealing(redis) }

    /// As ``QueueCatalog/resolve(_:)``, but the id of a batch of which Redis has lost the record is found, too.
    package func resolveBroken(_ name: String?) async throws(PrefetchError) -> String {
        do throws(PrefetchError) {
            return try await catalog.resolve(name)
        } catch {
            guard error.kind == .notFound, let name, Self.isValidBatchID(name) else { throw error }
            let isThere = try await bridgingErrors { () async throws(RedisError) in
                try await keySpace.hasKeys(of: name)
            }
            guard isThere else { throw error }
            return name
        }
    }
}

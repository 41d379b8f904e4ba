package import Redis

/// The keys of a queue, found by a scan of Redis.
package struct KeySpace: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    /// Scans all keys of this Redis once.
    package func foundKeys() async throws(RedisError) -> FoundKeys {
        var found = FoundKeys()
        let listed = Set(try await QueueCatalog(redis).listed() ?? [])
        var parts: Set<String> = []
        for name in try await names(startingWith: "").sorted() {
            if let type = PrefetchKeys.type(ofOther: name) {
                found.others.append((name, type))
                if name.hasPrefix("own:") { found.owners.append(String(name.dropFirst("own:".count))) }
            } else if let (id, type) = PrefetchKeys.typed(batchKey: name) {
                if PrefetchQueue.isValidBatchID(id) {
                    if name == "b:" + id { found.batches.append(id) } else { parts.insert(id) }
                }
                // No other check covers these: no batch of this name could be created.
                if !listed.contains(id) { found.others.append((name, type)) }
            }
        }
        found.remains = try await remains(among: parts.subtracting(found.batches).sorted())
        return found
    }

    /// Those that still have keys but no hash: a batch may have started, or been removed, during the scan.
    private func remains(among ids: [String]) async throws(RedisError) -> [String] {
        guard !ids.isEmpty else { return [] }
        let keys = redis.keys
        let replies = try await redis.read(
            ids.flatMap { id in
                [
                    ["EXISTS", RedisArgument(keys.batch(id))],
                    ["EXISTS"] + PrefetchKeys.typed(ofBatch: id).map { RedisArgument("\(keys.root):\($0.name)") },
                ]
            })
        var found: [String] = []
        for (number, id) in ids.enumerated() {
            let (hash, all) = (try replies[2 * number].get().int ?? 0, try replies[2 * number + 1].get().int ?? 0)
            if hash == 0 && all > 0 { found.append(id) }
        }
        return found
    }

    /// Workers with a hash of claims, registered or not, sorted. Scans all keys of this Redis once.
    package func owners() async throws(RedisError) -> [String] {
        try await names(startingWith: "own:").map { String($0.dropFirst("own:".count)) }.sorted()
    }

    /// Ids of all batches in Redis. If the key that lists them has a wrong type, they are found by their names.
    package func everyBatch() async throws(RedisError) -> [String] {
        if try await QueueCatalog(redis).listed() == nil { return try await foundKeys().batches }
        return try await QueueCatalog(redis).ids()
    }

    /// Keys of the queue, without its root and the colon.
    func names(startingWith start: String) async throws(RedisError) -> Set<String> {
        let prefix = redis.keys.root + ":"
        var names: Set<String> = []
        var cursor = "0"
        repeat {
            let reply =
                try await redis.read([
                    ["SCAN", RedisArgument(cursor), "MATCH", RedisArgument(prefix + start + "*"), "COUNT", "1000"]
                ])[0].get().array ?? []
            cursor = reply.first?.string ?? "0"
            for key in (reply.last?.array ?? []).compactMap(\.string) {
                names.insert(String(key.dropFirst(prefix.count)))
            }
        } while cursor != "0"
        return names
    }

    /// Whether Redis has any key of a batch.
    func hasKeys(of batch: String) async throws(RedisError) -> Bool {
        let names = PrefetchKeys.typed(ofBatch: batch).map { RedisArgument("\(redis.keys.root):\($0.name)") }
        return try await redis.read([["EXISTS"] + names])[0].get().int ?? 0 > 0
    }

    package func wrongKeys(of batch: String) async throws(RedisError) -> [WrongKey] {
        try await wrongKeys(among: PrefetchKeys.typed(ofBatch: batch))
    }

    /// Keys of the queue itself and of these workers that have a wrong type.
    package func wrongKeys(workers: [String]) async throws(RedisError) -> [WrongKey] {
        try await wrongKeys(among: PrefetchKeys.ofQueue + workers.flatMap(PrefetchKeys.typed(ofWorker:)))
    }

    /// Keys of these workers that have a wrong type.
    func wrongKeys(ofWorkers workers: [String]) async throws(RedisError) -> [WrongKey] {
        try await wrongKeys(among: workers.flatMap(PrefetchKeys.typed(ofWorker:)))
    }

    /// Keys that have a wrong type, among those of the queue itself and those a scan has found besides its batches.
    package func wrongKeys(_ found: FoundKeys) async throws(RedisError) -> [WrongKey] {
        try await wrongKeys(among: PrefetchKeys.ofQueue + found.others)
    }

    private func wrongKeys(among names: [PrefetchKeys.Typed]) async throws(RedisError) -> [WrongKey] {
        var wrong: [WrongKey] = []
        for start in stride(from: 0, to: names.count, by: 1000) {
            let part = names[start..<min(start + 1000, names.count)]
            let types = try await redis.read(part.map { ["TYPE", RedisArgument(redis.keys.root + ":" + $0.name)] })
            for ((name, wanted), reply) in zip(part, types) {
                let type = try reply.get().string ?? "none"
                if type != "none" && type != wanted { wrong.append(WrongKey(name: name, type: type, wanted: wanted)) }
            }
        }
        return wrong
    }
}

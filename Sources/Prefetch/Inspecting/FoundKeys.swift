package import Redis

/// What a pass over all keys of Redis has found of a queue: keys whose names no other key tells for certain.
struct FoundKeys {
    /// Whoever has a hash of claims, registered or not, sorted.
    var owners: [String] = []
    /// Batches that have a hash, whether the queue lists them or not, sorted.
    var batches: [String] = []
    /// Keys of workers, hosts and sites, and of batches that the queue does not list, with the types they must have, sorted.
    var others: [PrefetchKeys.Typed] = []
}

extension PrefetchQueue {
    /// Passes over all keys of this Redis once.
    func foundKeys() async throws(RedisError) -> FoundKeys {
        var found = FoundKeys()
        let listed = Set(try await listedBatches() ?? [])
        for name in try await names(startingWith: "").sorted() {
            if let type = PrefetchKeys.type(ofOther: name) {
                found.others.append((name, type))
                if name.hasPrefix("own:") { found.owners.append(String(name.dropFirst("own:".count))) }
            } else if let (id, type) = PrefetchKeys.typed(batchKey: name) {
                if name == "b:" + id && Self.isValidBatchID(id) { found.batches.append(id) }
                // Nobody else looks at these, and no batch of this name could be made.
                if !listed.contains(id) { found.others.append((name, type)) }
            }
        }
        return found
    }

    /// Whoever has a hash of claims, registered or not, sorted. Passes over all keys of this Redis once.
    func owners() async throws(RedisError) -> [String] {
        try await names(startingWith: "own:").map { String($0.dropFirst("own:".count)) }.sorted()
    }

    /// Ids of all batches Redis still has, also where the key that lists them is of a wrong type: then by their names.
    package func everyBatch() async throws(RedisError) -> [String] {
        if try await listedBatches() == nil { return try await foundKeys().batches }
        return try await batches()
    }

    /// The members of the set of batches; nil where that is no such set.
    func listedBatches() async throws(RedisError) -> [String]? {
        let reply = try await read([["ZRANGE", RedisArgument(keys.batches), "0", "-1"]])[0]
        if reply.error?.code == "WRONGTYPE" { return nil }
        return (try reply.get().array ?? []).compactMap(\.string)
    }

    /// Keys of the queue, without its root and the colon.
    func names(startingWith start: String) async throws(RedisError) -> Set<String> {
        let prefix = keys.root + ":"
        var names: Set<String> = []
        var cursor = "0"
        repeat {
            let reply =
                try await read([
                    ["SCAN", RedisArgument(cursor), "MATCH", RedisArgument(prefix + start + "*"), "COUNT", "1000"]
                ])[0].get().array ?? []
            cursor = reply.first?.string ?? "0"
            for key in (reply.last?.array ?? []).compactMap(\.string) {
                names.insert(String(key.dropFirst(prefix.count)))
            }
        } while cursor != "0"
        return names
    }
}

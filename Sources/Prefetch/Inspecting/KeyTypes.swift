internal import Redis

/// A key of a queue that is of another type than the queue's: somebody else has written to it.
package struct WrongKey: Sendable, Equatable {
    /// What stands behind the root of the keys and a colon.
    var name: String
    /// What it is, and what it must be.
    var type: String, wanted: String

    func sentence(_ keys: PrefetchKeys) -> String {
        "\(keys.root):\(name) is a \(type), not a \(wanted)"
    }
}

extension PrefetchQueue {
    /// Keys of a batch that are of a wrong type.
    func wrongKeys(of batch: String) async throws(RedisError) -> [WrongKey] {
        try await wrongKeys(among: PrefetchKeys.typed(ofBatch: batch))
    }

    /// Keys of the queue itself and of these workers that are of a wrong type.
    func wrongKeys(workers: [String]) async throws(RedisError) -> [WrongKey] {
        try await wrongKeys(among: PrefetchKeys.ofQueue + workers.flatMap(PrefetchKeys.typed(ofWorker:)))
    }

    /// Keys of the queue itself, and what a pass has found beside those and the keys of its batches, that are of a wrong type.
    func wrongKeys(_ found: FoundKeys) async throws(RedisError) -> [WrongKey] {
        try await wrongKeys(among: PrefetchKeys.ofQueue + found.others)
    }

    private func wrongKeys(among names: [PrefetchKeys.Typed]) async throws(RedisError) -> [WrongKey] {
        var wrong: [WrongKey] = []
        for start in stride(from: 0, to: names.count, by: 1000) {
            let part = names[start..<min(start + 1000, names.count)]
            let types = try await read(part.map { ["TYPE", RedisArgument(keys.root + ":" + $0.name)] })
            for ((name, wanted), reply) in zip(part, types) {
                let type = try reply.get().string ?? "none"
                if type != "none" && type != wanted { wrong.append(WrongKey(name: name, type: type, wanted: wanted)) }
            }
        }
        return wrong
    }

    /// Gives the keys another name, `aside:…`, under which they stay for a week.
    func putAside(_ wrong: [WrongKey]) async throws(RedisError) -> [String] {
        var lines: [String] = []
        for key in wrong where try await putAside(key.name, unlessType: key.wanted) {
            lines.append("put aside \(key.sentence(keys)): it is \(keys.aside(key.name)) for a week")
        }
        return lines
    }
}

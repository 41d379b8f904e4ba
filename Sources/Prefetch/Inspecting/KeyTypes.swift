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
        try await wrongKeys(among: [
            ("b:\(batch)", "hash"), ("b:\(batch):o", "string"), ("b:\(batch):skipped", "hash"),
            ("b:\(batch):records", "hash"), ("b:\(batch):w", "hash"), ("b:\(batch):hosts", "hash"),
            ("b:\(batch):refused", "hash"), ("b:\(batch):tries", "hash"), ("jobs:\(batch)", "list"),
        ])
    }

    /// Keys of the queue itself and of these workers that are of a wrong type.
    func wrongKeys(workers: [String]) async throws(RedisError) -> [WrongKey] {
        let own = workers.flatMap { [("own:\($0)", "hash"), ("w:\($0)", "hash")] }
        return try await wrongKeys(
            among: [
                ("batches", "zset"), ("running", "set"), ("ready:high", "list"), ("ready:normal", "list"),
                ("ready:low", "list"), ("bell", "list"), ("wheel", "string"), ("workers", "zset"), ("hold", "string"),
                ("dead", "list"), ("slots", "hash"), ("held", "hash"), ("failed", "set"), ("failed:meta", "hash"),
                ("hosts", "hash"), ("clock", "hash"), ("failed:lapses", "zset"), ("failed:stays", "zset"),
                ("failed:limit", "hash"),
            ] + own)
    }

    private func wrongKeys(among names: [(name: String, type: String)]) async throws(RedisError) -> [WrongKey] {
        let types = try await read(names.map { ["TYPE", RedisArgument(keys.root + ":" + $0.name)] })
        var wrong: [WrongKey] = []
        for ((name, wanted), reply) in zip(names, types) {
            let type = try reply.get().string ?? "none"
            if type != "none" && type != wanted { wrong.append(WrongKey(name: name, type: type, wanted: wanted)) }
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

internal import Redis

extension PrefetchQueue {
    private static let mend = step(PackageResources.RECORDS_lua)

    /// * `chunks`: fields of the hash; some hundred at most.
    func mendRecords(
        _ batch: String, token: String, chunks: [String]
    ) async throws(RedisError) -> (dropped: Int, made: Int) {
        let arguments = [RedisArgument(batch), RedisArgument(token)] + chunks.map { RedisArgument($0) }
        let reply = try await run(Self.mend, arguments).array ?? []
        return (reply.first?.int ?? 0, reply.last?.int ?? 0)
    }

    /// The fields of the hash of records.
    func recordNames(of batch: String) async throws(RedisError) -> [String] {
        try await records(of: batch).keys.sorted()
    }

    /// The whole hash of records: a field is a chunk of 256 indices.
    func records(of batch: String) async throws(RedisError) -> [String: [UInt8]] {
        var found: [String: [UInt8]] = [:]
        var cursor = "0"
        repeat {
            let reply =
                try await read([
                    ["HSCAN", RedisArgument(keys.records(batch)), RedisArgument(cursor), "COUNT", "1000"]
                ])[0].get().array ?? []
            cursor = reply.first?.string ?? "0"
            for (name, value) in reply.last?.fields ?? [:] { found[name] = value.bytes ?? [] }
        } while cursor != "0"
        return found
    }
}

package import Redis

/// The outcomes of a batch, and their details.
package struct QueueResults: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    /// First-write counts of each worker that reported for a batch, including dead ones: they add up to the batch's.
    package func workerCounts(of id: String) async throws(RedisError) -> [String: PrefetchCounts] {
        let fields =
            try await redis.read([["HGETALL", RedisArgument(redis.keys.workerCounts(id))]])[0].get().fields ?? [:]
        return Self.countsByWorker(fields)
    }

    /// Outcome bytes of a range of URL indices; 0 = open.
    package func outcomes(of id: String, range: Range<Int>) async throws(RedisError) -> [UInt8] {
        try await bytes(redis.keys.outcomes(id), range)
    }

    /// A range of a string of one byte per URL; zeros after its end.
    private func bytes(_ key: String, _ range: Range<Int>) async throws(RedisError) -> [UInt8] {
        let reply = try await redis.read([
            [
                "GETRANGE", RedisArgument(key), RedisArgument(range.lowerBound),
                RedisArgument(range.upperBound - 1),
            ]
        ])
        var bytes = try reply[0].get().bytes ?? []
        bytes += Array(repeating: 0, count: max(0, range.count - bytes.count))
        return bytes
    }

    package func caches(of id: String) async throws(RedisError) -> BatchCaches {
        let fields = try await redis.read([["HGETALL", RedisArgument(redis.keys.caches(id))]])[0].get().fields ?? [:]
        return BatchCaches(fields: fields.compactMapValues(\.string))
    }

    /// The numbers of the caches of the images of a range of URL indices; meaningless for a URL without an image.
    package func places(of id: String, range: Range<Int>) async throws(RedisError) -> [UInt8] {
        try await bytes(redis.keys.places(id), range)
    }

    package func details(of id: String, indices: [Int]) async throws(RedisError) -> [Int: FailureDetail] {
        guard !indices.isEmpty else { return [:] }
        let values =
            try await redis.read([
                ["HMGET", RedisArgument(redis.keys.skipped(id))] + indices.map { RedisArgument($0) }
            ])[0].get().array ?? []
        var result: [Int: FailureDetail] = [:]
        for (index, value) in zip(indices, values) {
            if let detail = value.string.flatMap(FailureDetail.init(encoded:)) { result[index] = detail }
        }
        return result
    }

    /// The whole hash of records: a field is a chunk of 256 indices.
    func records(of batch: String) async throws(RedisError) -> [String: [UInt8]] {
        var found: [String: [UInt8]] = [:]
        try await scan(redis.keys.records(batch)) { part in
            for (name, value) in part.fields ?? [:] { found[name] = value.bytes ?? [] }
        }
        return found
    }

    /// A hash, about a thousand fields at a time.
    private func scan(_ key: String, _ body: (RedisValue) -> Void) async throws(RedisError) {
        var cursor = "0"
        repeat {
            let words: [RedisArgument] = ["HSCAN", RedisArgument(key), RedisArgument(cursor), "COUNT", "1000"]
            let reply = try await redis.read([words])[0].get().array ?? []
            cursor = reply.first?.string ?? "0"
            if let part = reply.last { body(part) }
        } while cursor != "0"
    }

    /// Counts by worker from the fields `worker:code` and `worker:bytes`.
    static func countsByWorker(_ fields: [String: RedisValue]) -> [String: PrefetchCounts] {
        var counts: [String: PrefetchCounts] = [:]
        for (name, value) in fields {
            guard let colon = name.lastIndex(of: ":"), let number = value.count else { continue }
            let worker = String(name[..<colon])
            let what = name[name.index(after: colon)...]
            if what == "bytes" {
                counts[worker, default: PrefetchCounts()].bytes = number
            } else if let outcome = UInt8(what).flatMap(PrefetchOutcome.init(code:)) {
                // Several codes of later versions may map to one outcome here.
                counts[worker, default: PrefetchCounts()][outcome] += number
            }
        }
        return counts
    }

    /// A random sample of the details of skipped URLs, by index.
    package func someFailures(of id: String, most: Int) async throws(RedisError) -> [Int: FailureDetail] {
        let reply = try await redis.read([
            ["HRANDFIELD", RedisArgument(redis.keys.skipped(id)), RedisArgument(most), "WITHVALUES"]
        ]
        )[0]
        var found: [Int: FailureDetail] = [:]
        for (name, value) in try reply.get().fields ?? [:] {
            guard let index = Int(plausible: name), let detail = value.string.flatMap(FailureDetail.init(encoded:))
            else {
                continue
            }
            found[index] = detail
        }
        return found
    }

    package func detailsKept(of batch: String) async throws(RedisError) -> Int {
        try await redis.read([["HLEN", RedisArgument(redis.keys.skipped(batch))]])[0].get().int ?? 0
    }

    /// The details of one URL, by line. Reads all details of the batch, a thousand at a time: the hash is keyed by index only.
    package func keptDetails(of batch: String, url: String) async throws(RedisError) -> [FailureDetail] {
        let wanted = Array(url.utf8)
        var found: [Int: FailureDetail] = [:]
        try await scan(redis.keys.skipped(batch)) { part in
            let pairs = part.array ?? []
            for at in stride(from: 1, to: pairs.count, by: 2) {
                guard let value = pairs[at].bytes, Self.hasURL(value, wanted), let text = pairs[at].string,
                    let detail = FailureDetail(encoded: text)
                else { continue }
                found[detail.line] = detail
            }
        }
        return found.values.sorted { $0.line < $1.line }
    }

    /// Whether the fifth TAB-separated field is this URL, without splitting the others.
    private static func hasURL(_ value: [UInt8], _ url: [UInt8]) -> Bool {
        guard value.count > url.count else { return false }
        var start = 0
        for _ in 0..<4 {
            guard let tab = value[start...].firstIndex(of: UInt8(ascii: "\t")) else { return false }
            start = tab + 1
        }
        let rest = value[start...]
        return rest.starts(with: url) && rest.dropFirst(url.count).first == UInt8(ascii: "\t")
    }
}

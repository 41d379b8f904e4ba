/// The type of every key of a queue, as named by Redis' TYPE. Neither the check nor the healing covers a key that is missing here, so a test
/// compares these with ``PrefetchKeys``, with the keys that scripts build, and with the table in `docs/PROTOCOL.md`.
extension PrefetchKeys {
    /// Name after the root and the colon, with `*` for the variable part, and required type.
    typealias Typed = (name: String, type: String)

    static let ofQueue: [Typed] = [
        ("batches", "zset"), ("running", "set"), ("ready:high", "list"), ("ready:normal", "list"),
        ("ready:low", "list"), ("bell", "list"), ("turns", "hash"), ("paused", "string"), ("concurrency", "string"),
        ("workers", "zset"), ("gone", "zset"), ("hold", "string"), ("clock", "hash"), ("dead", "list"),
        ("healed", "string"), ("losses", "hash"), ("slots", "hash"), ("deadlines", "zset"), ("hosts", "hash"),
        ("witnesses", "zset"), ("failed", "set"),
        ("failed:meta", "hash"),
        ("failed:lapses", "zset"), ("failed:stays", "zset"), ("failed:limit", "hash"),
    ]

    /// Keys of each batch; `*` is its id.
    static let ofBatch: [Typed] = [
        ("b:*", "hash"), ("b:*:o", "string"), ("b:*:skipped", "hash"), ("b:*:records", "hash"),
        ("b:*:w", "hash"), ("b:*:hosts", "hash"), ("b:*:refused", "hash"),
        ("b:*:tries", "hash"), ("b:*:caches", "hash"), ("b:*:places", "string"), ("b:*:shards", "hash"),
        ("jobs:*", "list"),
    ]

    /// Keys of workers, hosts and sites, which no other key lists completely.
    static let ofOthers: [Typed] = [
        ("own:*", "hash"), ("w:*", "hash"), ("rate:*", "string"), ("robots:*", "string"), ("robots:sum", "string"),
        ("failure:*", "string"),
        ("conns:*", "hash"),
    ]

    static func typed(ofBatch id: String) -> [Typed] {
        ofBatch.map { ($0.name.replacing("*", with: id), $0.type) }
    }

    /// The batch of a key, and the key's required type; nil for other keys.
    static func typed(batchKey name: String) -> (batch: String, type: String)? {
        let parts = name.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0] == "b" || parts[0] == "jobs" else { return nil }
        let pattern = "\(parts[0]):*" + (parts.count == 3 ? ":\(parts[2])" : "")
        return ofBatch.first { $0.name == pattern }.map { (String(parts[1]), $0.type) }
    }

    static func typed(ofWorker id: String) -> [Typed] { [("own:\(id)", "hash"), ("w:\(id)", "hash")] }

    /// The type of a key of a worker, a host or a site; nil for any other.
    static func type(ofOther name: String) -> String? {
        ofOthers.first { name.hasPrefix($0.name.dropLast()) }?.type
    }
}

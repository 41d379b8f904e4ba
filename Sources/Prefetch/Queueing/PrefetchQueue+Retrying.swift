package import Redis
internal import WebImage

extension PrefetchQueue {
    /// Makes the next batch of what was skipped of one that is over, with its list and settings and `retryFailed`; OPEN links the two.
    ///
    /// * `root`: the first batch of the chain, whose id it continues with `.2`, `.3` …
    /// * `maxPerHost`: as ``BatchOptions/maxPerHost``; nil: as before.
    /// * `nonce`: any text that no other call uses; with the same one the call may be repeated.
    /// Returns its id; nil where the batch runs, is gone, or has a retry meanwhile.
    package func retry(
        of status: BatchStatus, root: String, host: String, maxPerHost: Int? = nil, nonce: String
    ) async throws(RedisError) -> String? {
        let names = ["order", "priority", "keep"]
        let values =
            try await read([
                ["HMGET", RedisArgument(keys.batch(status.id))] + names.map { RedisArgument($0) }
            ])[0].get().array ?? []
        var options = status.options
        options.retryFailed = true
        options.maxPerHost = maxPerHost ?? options.maxPerHost
        var fields = [
            ("total", String(status.counts.skipped)), ("list", status.listPath), ("hash", status.listHash),
            ("options", options.encoded), ("details", String(status.keepDetails)), ("host", host),
            ("retry_of", status.id),
        ]
        for (name, value) in zip(names, values) {
            if let value = value.string { fields.append((name, value)) }
        }
        return try await open(id: root, nonce: nonce, exactly: false, fields: fields)
    }
}

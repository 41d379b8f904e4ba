package import Redis

/// The lists of batches that were submitted open.
package struct QueueLists: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    /// What became of a list that was to be added to an open batch.
    package enum AppendResult: Sendable, Equatable {
        /// It is one of the batch's lists; whether this call made it so, and how many URLs of the batch are pushed.
        case listed(ListSegment, isNew: Bool, pushed: Int)
        /// The batch takes no more lists: `sealed`, `done`, `cancelled`, `gone`, or `single` where it was not submitted open.
        case closed(String)
    }

    private static let append = QueueScript.script(PackageResources.APPEND_lua)

    /// Adds a list to an open batch, where it is not there yet; its URLs are to be pushed then.
    ///
    /// * `hash`, `total`, `lines`, `path`: of the list.
    /// * `nonce`: a word that no other call uses; with the same one the call may be repeated.
    /// * `again`: whether a list that is there, and is pushed to its end, is added once more.
    package func append(
        hash: String, total: Int, lines: Int, path: String, to batch: String, nonce: String, host: String, again: Bool
    ) async throws(RedisError) -> AppendResult {
        let reply =
            try await redis.run(
                Self.append,
                [
                    RedisArgument(batch), RedisArgument(nonce), RedisArgument(hash), RedisArgument(total),
                    RedisArgument(lines), RedisArgument(host), RedisArgument(path), again ? "1" : "0",
                ]
            ).array ?? []
        guard reply.count == 5, let number = reply[1].int, let element = reply[2].string,
            let segment = ListSegment(number: number, element: element)
        else { return .closed(reply.last?.string ?? "gone") }
        return .listed(segment, isNew: reply[3].string == "1", pushed: reply[4].int ?? 0)
    }

    private static let close = QueueScript.script(PackageResources.CLOSE_lua)

    /// Says that an open batch gets no more lists. `pushed`: it is sealed, with so many URLs; `at`: so many are pushed, and with
    /// its last URL it will be.
    package func close(batch: String) async throws(RedisError) -> QueueBatches.PushResult {
        let reply = try await redis.run(Self.close, [RedisArgument(batch)]).array ?? []
        let value = reply.last?.string ?? ""
        switch reply.first?.string {
        case "OK": return .pushed(Int(value) ?? 0)
        case "WAITS": return .at(Int(value) ?? 0)
        default: return .closed(value)
        }
    }

    /// The lists of a batch that was submitted open, in their order; none of any other.
    package func segments(of batch: String) async throws(RedisError) -> [ListSegment] {
        let elements =
            try await redis.read([["LRANGE", RedisArgument(redis.keys.lists(batch)), "0", "-1"]])[0].get().array ?? []
        return elements.enumerated().compactMap { number, element in
            element.string.flatMap { ListSegment(number: number, element: $0) }
        }
    }
}

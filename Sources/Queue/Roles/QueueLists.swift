package import Redis

/// The lists of batches that were submitted open.
package struct QueueLists: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    package enum AppendResult: Sendable, Equatable {
        /// One of the batch's lists; `isNew`: added by this call; `pushed`: URLs of the batch pushed so far.
        case listed(ListSegment, isNew: Bool, pushed: Int)
        /// The batch takes no more lists: `sealed`, `done`, `cancelled`, `gone`, or `single` if it was not submitted open.
        case closed(String)
    }

    private static let append = QueueScript.script(PackageResources.APPEND_lua)

    /// Adds a list to an open batch, if it is not there yet; its URLs have to be pushed after that.
    /// * `hash`, `total`, `lines`, `path`: of the list.
    /// * `nonce`: unique per call; a repeated call passes the same one.
    /// * `again`: whether a list that is there and fully pushed is added once more.
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

    /// States that an open batch gets no more lists. `pushed`: it is sealed, with that total; `at`: its last URL will seal it.
    package func close(batch: String) async throws(RedisError) -> QueueBatches.PushResult {
        let reply = try await redis.run(Self.close, [RedisArgument(batch)]).array ?? []
        let value = reply.last?.string ?? ""
        switch reply.first?.string {
        case "OK": return .pushed(Int(value) ?? 0)
        case "WAITS": return .at(Int(value) ?? 0)
        default: return .closed(value)
        }
    }

    /// The lists of an open batch in order; empty for any other.
    package func segments(of batch: String) async throws(RedisError) -> [ListSegment] {
        let elements =
            try await redis.read([["LRANGE", RedisArgument(redis.keys.lists(batch)), "0", "-1"]])[0].get().array ?? []
        return elements.enumerated().compactMap { number, element in
            element.string.flatMap { ListSegment(number: number, element: $0) }
        }
    }
}

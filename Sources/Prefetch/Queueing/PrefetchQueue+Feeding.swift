package import Redis

extension PrefetchQueue {
    private static let open = script(PackageResources.OPEN_lua)

    /// Makes a batch and returns its id; nil where `exactly` this id is wanted and taken.
    /// * `nonce`: any text that no other call uses; with the same one the call may be repeated.
    package func open(
        id: String, nonce: String, exactly: Bool, fields: [(String, String)]
    ) async throws(RedisError) -> String? {
        try await open(id: id, nonce: nonce, exactly: exactly, slot: nil, fields: fields)?.id
    }

    /// A batch that was made.
    package struct Opened: Sendable, Equatable {
        /// Its id.
        package var id: String
        /// The batch that had the slot and was cancelled for it.
        package var replaced: String?
    }

    /// Makes a batch that takes a slot: the running batch that has it is cancelled in the same step.
    package func open(
        id: String, nonce: String, exactly: Bool, slot: String?, fields: [(String, String)]
    ) async throws(RedisError) -> Opened? {
        var arguments: [RedisArgument] = [RedisArgument(id), RedisArgument(nonce), exactly ? "1" : "0"]
        arguments.append(RedisArgument(slot ?? ""))
        for (name, value) in fields { arguments += [RedisArgument(name), RedisArgument(value)] }
        guard let reply = try await run(Self.open, arguments).array, let id = reply.first?.string else { return nil }
        return Opened(id: id, replaced: reply.last?.string.flatMap { $0.isEmpty ? nil : $0 })
    }

    /// The running batch that has a slot.
    package func batch(inSlot slot: String) async throws(RedisError) -> String? {
        try await read([["HGET", RedisArgument(keys.slots), RedisArgument(slot)]])[0].get().string
    }

    /// What Redis said to jobs that were offered to it.
    package enum PushResult: Sendable, Equatable {
        /// Taken; so many URLs of the batch are pushed now.
        case pushed(Int)
        /// The window is full: offer them again when workers have claimed some.
        case full
        /// Redis has another number of URLs than the caller thinks (a lost reply, or Redis lost its tail): go on from there.
        case at(Int)
        /// The batch takes no more: `sealed`, `done`, `cancelled`, or `gone` where Redis knows it no more; `unlisted` where it has
        /// no such list, `open` where it has lists and none was named.
        case closed(String)
    }

    private static let push = script(PackageResources.PUSH_lua)

    /// Pushes consecutive jobs of a batch.
    ///
    /// * `offset`: how many of the batch's URLs are pushed already; what makes a repeated call harmless.
    /// * `window`: `auto`, `all` or a number of jobs; but for `all` it is 24 MiB at most.
    /// * `list`: which list of an open batch they are of.
    package func push(
        batch: String, offset: Int, window: String, count: Int, of list: ListSegment? = nil, jobs: [[UInt8]]
    ) async throws(RedisError) -> PushResult {
        var arguments: [RedisArgument] = [
            RedisArgument(batch), RedisArgument(offset), RedisArgument(window), RedisArgument(count),
            RedisArgument(list.map { "\($0.number) \($0.hash)" } ?? ""),
        ]
        arguments += jobs.map { RedisArgument($0) }
        let reply = try await run(Self.push, arguments).array ?? []
        let value = reply.last?.string ?? ""
        switch reply.first?.string {
        case "OK": return .pushed(Int(value) ?? 0)
        case "FULL": return .full
        case "AT": return .at(Int(value) ?? 0)
        default: return .closed(value)
        }
    }

    private static let full = script(PackageResources.FULL_lua)

    /// Says that the feeder of a batch waits for memory; returns the batch's state, nil where Redis knows it no more.
    package func noteFull(batch: String) async throws(RedisError) -> String? {
        try await run(Self.full, [RedisArgument(batch)]).string
    }

    private static let seal = script(PackageResources.SEAL_lua)

    /// Says that the batch has `total` URLs and all are pushed.
    package func seal(batch: String, total: Int) async throws(RedisError) -> PushResult {
        let reply = try await run(Self.seal, [RedisArgument(batch), RedisArgument(total)]).array ?? []
        let value = reply.last?.string ?? ""
        switch reply.first?.string {
        case "OK": return .pushed(Int(value) ?? 0)
        case "AT": return .at(Int(value) ?? 0)
        default: return .closed(value)
        }
    }

    private static let cancel = script(PackageResources.CANCEL_lua)

    /// Cancels a batch; returns the state it had before, nil where there is none of this id.
    package func cancel(batch: String) async throws(RedisError) -> String? {
        try await run(Self.cancel, [RedisArgument(batch)]).string
    }
}

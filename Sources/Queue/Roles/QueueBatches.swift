package import Redis

/// The life of a batch: it is opened, fed, sealed, and ends; and how far it is.
package struct QueueBatches: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    private static let open = QueueScript.script(PackageResources.OPEN_lua)

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
        guard let reply = try await redis.run(Self.open, arguments).array, let id = reply.first?.string else {
            return nil
        }
        return Opened(id: id, replaced: reply.last?.string.flatMap { $0.isEmpty ? nil : $0 })
    }

    /// The running batch that has a slot.
    package func batch(inSlot slot: String) async throws(RedisError) -> String? {
        try await redis.read([["HGET", RedisArgument(redis.keys.slots), RedisArgument(slot)]])[0].get().string
    }

    /// Makes the next batch of what was skipped of one that is over, with its list and settings and `retryFailed`; OPEN links the two.
    ///
    /// * `root`: the first batch of the chain, whose id it continues with `.2`, `.3` …
    /// * `requests`: how requests are made otherwise than before.
    /// * `nonce`: any text that no other call uses; with the same one the call may be repeated.
    /// Returns its id; nil where the batch runs, is gone, or has a retry meanwhile.
    package func retry(
        of status: BatchStatus, root: String, host: String, requests: RequestSettings = RequestSettings(), nonce: String
    ) async throws(RedisError) -> String? {
        let names = ["order", "priority", "keep"]
        let values =
            try await redis.read([
                ["HMGET", RedisArgument(redis.keys.batch(status.id))] + names.map { RedisArgument($0) }
            ])[0].get().array ?? []
        var options = status.options
        options.retryFailed = true
        options.requests = options.requests.overridden(by: requests)
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

    private static let push = QueueScript.script(PackageResources.PUSH_lua)

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
        let reply = try await redis.run(Self.push, arguments).array ?? []
        let value = reply.last?.string ?? ""
        switch reply.first?.string {
        case "OK": return .pushed(Int(value) ?? 0)
        case "FULL": return .full
        case "AT": return .at(Int(value) ?? 0)
        default: return .closed(value)
        }
    }

    private static let full = QueueScript.script(PackageResources.FULL_lua)

    /// Says that the feeder of a batch waits for memory; returns the batch's state, nil where Redis knows it no more.
    package func noteFull(batch: String) async throws(RedisError) -> String? {
        try await redis.run(Self.full, [RedisArgument(batch)]).string
    }

    private static let seal = QueueScript.script(PackageResources.SEAL_lua)

    /// Says that the batch has `total` URLs and all are pushed.
    package func seal(batch: String, total: Int) async throws(RedisError) -> PushResult {
        let reply = try await redis.run(Self.seal, [RedisArgument(batch), RedisArgument(total)]).array ?? []
        let value = reply.last?.string ?? ""
        switch reply.first?.string {
        case "OK": return .pushed(Int(value) ?? 0)
        case "AT": return .at(Int(value) ?? 0)
        default: return .closed(value)
        }
    }

    private static let cancel = QueueScript.script(PackageResources.CANCEL_lua)

    /// Cancels a batch; returns the state it had before, nil where there is none of this id.
    package func cancel(batch: String) async throws(RedisError) -> String? {
        try await redis.run(Self.cancel, [RedisArgument(batch)]).string
    }

    /// What became of a batch that was to go.
    package enum Removal: Sendable, Equatable {
        /// Nothing of it is left.
        case removed
        /// Redis had none of this id.
        case gone
        /// It runs: cancel it first.
        case running
        /// Its skipped lines are the entries of this batch: remove that first.
        case retriedBy(String)
    }

    private static let remove = QueueScript.script(PackageResources.REMOVE_lua)

    /// Removes a batch that is over.
    package func remove(batch: String) async throws(RedisError) -> Removal {
        let reply = try await redis.run(Self.remove, [RedisArgument(batch)]).array ?? []
        switch reply.first?.string {
        case "OK": return .removed
        case "RUNNING": return .running
        case "RETRIED": return .retriedBy(reply.last?.string ?? "")
        default: return .gone
        }
    }

    private static let due = QueueScript.script(PackageResources.DUE_lua)

    /// Ends the batches whose deadline has passed.
    package func endDue() async throws(RedisError) {
        _ = try await redis.run(Self.due, [])
    }

    /// Ends them for who only looks; false where Redis takes no writes now, and then a worker will do it.
    func endedDue() async -> Bool {
        (try? await redis.connection.run(Self.due, keys: [RedisArgument(redis.keys.root)], arguments: [])) != nil
    }

    /// A batch as it is now; nil where Redis has none of this id.
    package func status(of id: String) async throws(RedisError) -> BatchStatus? {
        try await statuses(of: [id]).first
    }

    /// Several batches as they are now, in one round trip; those that are gone are left out. One whose deadline has passed is ended by
    /// this look, where no worker has done it.
    package func statuses(of ids: [String]) async throws(RedisError) -> [BatchStatus] {
        var found = try await readings(of: ids)
        for _ in 0...(ids.count / 16) where found.contains(where: \.isPastDeadline) {
            guard await endedDue() else { break }
            found = try await readings(of: ids)
        }
        return try await withoutDeadLinks(found)
    }

    private func readings(of ids: [String]) async throws(RedisError) -> [BatchStatus] {
        let replies = try await redis.read(
            redis.clockCommands + [["EXISTS", RedisArgument(redis.keys.paused)]]
                + ids.map { ["HGETALL", RedisArgument(redis.keys.batch($0))] })
        let now = try ScriptRunner.time(replies)
        let isPaused = try replies[2].get().int == 1
        var result: [BatchStatus] = []
        for (id, reply) in zip(ids, replies.dropFirst(3)) {
            // Somebody wrote something else to this key: no batch any more, and no reason to say nothing of the others.
            if reply.error?.code == "WRONGTYPE" { continue }
            if let status = BatchStatus(
                id: id, fields: try reply.get().fields ?? [:], at: now, isQueuePaused: isPaused)
            {
                result.append(status)
            }
        }
        return result
    }

    /// A link to a retry counts where that is one: its batch may be gone, or its name another batch's.
    private func withoutDeadLinks(_ statuses: [BatchStatus]) async throws(RedisError) -> [BatchStatus] {
        let links = statuses.compactMap(\.retriedBy)
        guard !links.isEmpty else { return statuses }
        let replies = try await redis.read(links.map { ["HGET", RedisArgument(redis.keys.batch($0)), "retry_of"] })
        var parents = replies.map(\.string)
        return statuses.map { status in
            var status = status
            if status.retriedBy != nil, parents.removeFirst() != status.id { status.retriedBy = nil }
            return status
        }
    }
}

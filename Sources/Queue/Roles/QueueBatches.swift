package import Redis

/// The life cycle of batches, and their status.
package struct QueueBatches: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    private static let open = QueueScript.script(PackageResources.OPEN_lua)

    /// Creates a batch and returns its id; nil if `exactly` this id is wanted and taken.
    /// * `nonce`: unique per call; a repeated call passes the same one.
    package func open(
        id: String, nonce: String, exactly: Bool, fields: [(String, String)]
    ) async throws(RedisError) -> String? {
        try await open(id: id, nonce: nonce, exactly: exactly, slot: nil, fields: fields)?.id
    }

    package struct Opened: Sendable, Equatable {
        package var id: String
        /// The batch that was cancelled to free the slot.
        package var replaced: String?
    }

    /// Creates a batch with a slot; a running batch in that slot is cancelled in the same step.
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

    package func batch(inSlot slot: String) async throws(RedisError) -> String? {
        try await redis.read([["HGET", RedisArgument(redis.keys.slots), RedisArgument(slot)]])[0].get().string
    }

    /// Creates a retry of the skipped URLs of a batch that is over, with its list, its settings but for when it ends, and `retryFailed`; OPEN links
    /// the two.
    /// * `given`: the names of the settings that are those of `changes` instead.
    /// * `root`: the first batch of the chain; the id continues it with `.2`, `.3` …
    /// * `nonce`: unique per call; a repeated call passes the same one.
    /// Returns its id; nil if the batch runs, is gone, or has a retry already.
    package func retry(
        of status: BatchStatus, root: String, host: String, taking given: Set<String> = [],
        of changes: BatchSettings = BatchSettings(),
        nonce: String
    ) async throws(RedisError) -> String? {
        var settings = status.settings
        (settings.turn.deadline, settings.turn.finishAt, settings.turn.maxFailures) = (nil, nil, nil)
        settings = settings.taking(given, of: changes)
        settings.options.retryFailed = true
        var fields = [
            ("total", String(status.counts.skipped)), ("list", status.listPath), ("hash", status.listHash),
            ("length", String(status.listBytes)), ("mark", status.listMark),
            ("details", String(status.keepDetails)), ("host", host), ("retry_of", status.id),
        ]
        if !status.listCopies.isEmpty { fields.append(("copies", status.listCopies)) }
        if !status.sources.isEmpty { fields.append(("sources", status.sources.joined(separator: "\0"))) }
        fields += settings.fields
        return try await open(id: root, nonce: nonce, exactly: false, fields: fields)
    }

    package enum PushResult: Sendable, Equatable {
        /// Taken; the number of URLs of the batch pushed so far.
        case pushed(Int)
        /// The window is full: retry when workers have claimed some.
        case full
        /// Redis has this number of pushed URLs, not the caller's (a lost reply, or Redis lost its last writes): go on from there.
        case at(Int)
        /// The batch takes no more: `sealed`, `done`, `cancelled`, or `gone`.
        case closed(String)
    }

    /// How far the list of an open batch was read.
    package struct ListProgress: Sendable {
        /// About how many URLs it has; 0: unknown.
        package var estimate = 0
        /// Bytes of the list up to the last URL that is pushed, and their SHA-256; 0 and empty: unknown.
        package var length = 0
        package var hash = ""
        /// Which file it is, and when that was written last; empty of what is no file of lines.
        package var mark = ""
        /// Whether the list has more URLs than when its batch was made or sealed.
        package var hasGrown = false

        package init() {}
    }

    private static let push = QueueScript.script(PackageResources.PUSH_lua)

    /// Pushes consecutive jobs of a batch.
    /// * `offset`: URLs of the batch pushed so far; makes repeated calls harmless.
    /// * `window`: `auto`, `all` or a number of jobs; 24 MiB at most unless it is `all`.
    /// * `list`: what an open batch notes of its list.
    package func push(
        batch: String, offset: Int, window: String, count: Int, list: ListProgress = ListProgress(), jobs: [[UInt8]]
    ) async throws(RedisError) -> PushResult {
        var arguments: [RedisArgument] = [
            RedisArgument(batch), RedisArgument(offset), RedisArgument(window), RedisArgument(count),
            RedisArgument(list.estimate), RedisArgument(list.length), RedisArgument(list.hash),
            RedisArgument(list.mark), list.hasGrown ? "1" : "",
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

    /// Notes that the feeder of a batch waits for memory; returns the batch's state, nil if it is gone.
    package func noteFull(batch: String) async throws(RedisError) -> String? {
        try await redis.run(Self.full, [RedisArgument(batch)]).string
    }

    private static let seal = QueueScript.script(PackageResources.SEAL_lua)

    /// States that the batch has `total` URLs and all are pushed.
    /// * `length`, `hash`: of its list; 0 and empty: unknown.
    /// * `files`: entries of each of its files, if it has several.
    package func seal(
        batch: String, total: Int, length: Int = 0, hash: String = "", files: [Int] = []
    ) async throws(RedisError) -> PushResult {
        let arguments = [
            RedisArgument(batch), RedisArgument(total), RedisArgument(length), RedisArgument(hash),
            RedisArgument(files.map(String.init).joined(separator: ",")),
        ]
        let reply = try await redis.run(Self.seal, arguments).array ?? []
        let value = reply.last?.string ?? ""
        switch reply.first?.string {
        case "OK": return .pushed(Int(value) ?? 0)
        case "AT": return .at(Int(value) ?? 0)
        default: return .closed(value)
        }
    }

    private static let cancel = QueueScript.script(PackageResources.CANCEL_lua)

    /// Cancels a batch; returns its state before, `broken` if Redis has lost its record and it was deleted, nil if there is no such batch.
    package func cancel(batch: String) async throws(RedisError) -> String? {
        try await redis.run(Self.cancel, [RedisArgument(batch)]).string
    }

    package enum Removal: Sendable, Equatable {
        case removed
        case gone
        case running
        /// Refused: its skipped lines are the entries of this retry, which has to be removed first.
        case retriedBy(String)
    }

    private static let remove = QueueScript.script(PackageResources.REMOVE_lua)

    /// * `force`: deletes it whatever its state and the types of its keys, also what is left of one.
    package func remove(batch: String, force: Bool = false) async throws(RedisError) -> Removal {
        let reply = try await redis.run(Self.remove, [RedisArgument(batch), force ? "1" : ""]).array ?? []
        switch reply.first?.string {
        case "OK": return .removed
        case "RUNNING": return .running
        case "RETRIED": return .retriedBy(reply.last?.string ?? "")
        default: return .gone
        }
    }

    private static let due = QueueScript.script(PackageResources.DUE_lua)

    package func endDue() async throws(RedisError) {
        _ = try await redis.run(Self.due, [])
    }

    /// ``endDue()`` for readers; false if Redis takes no writes now: a worker will do it later.
    func endDueIfWritable() async -> Bool {
        (try? await redis.connection.run(Self.due, keys: [RedisArgument(redis.keys.root)], arguments: [])) != nil
    }

    package func status(of id: String) async throws(RedisError) -> BatchStatus? {
        try await statuses(of: [id]).first
    }

    /// Several batches in one round trip; missing ones are left out. Ends batches whose deadline has passed if no worker has.
    package func statuses(of ids: [String]) async throws(RedisError) -> [BatchStatus] {
        var found = try await readings(of: ids)
        for _ in 0...(ids.count / 16) where found.contains(where: \.isPastDeadline) {
            guard await endDueIfWritable() else { break }
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
            // Another program has overwritten this key: skip this batch and report the others.
            if reply.error?.code == "WRONGTYPE" { continue }
            if let status = BatchStatus(
                id: id, fields: try reply.get().fields ?? [:], at: now, isQueuePaused: isPaused)
            {
                result.append(status)
            }
        }
        return result
    }

    /// Drops links to retries that are gone, or whose id belongs to another batch now.
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

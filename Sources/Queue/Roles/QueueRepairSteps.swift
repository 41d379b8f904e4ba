package import Redis

/// The steps of a repair of a queue or a batch (`BatchRepair`, `QueueRepair`). One repair at a time owns a batch, by a token that its steps
/// renew; others get `busy`. Every step may be sent again, and workers go on meanwhile.
package struct QueueRepairSteps: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    private static let putAside = QueueScript.script(PackageResources.ASIDE_lua)

    /// * `name`: after the root and the colon.
    func putAside(_ name: String, unlessType type: String) async throws(RedisError) -> Bool {
        try await redis.run(Self.putAside, [RedisArgument(name), RedisArgument(type)]).int == 1
    }

    private static let reclaim = QueueScript.script(PackageResources.RECLAIM_lua)

    package func reclaim(from worker: String) async throws(RedisError) -> Int {
        var count = 0
        while true {
            let reply = try await redis.run(Self.reclaim, [RedisArgument(worker)]).array ?? []
            count += reply.first?.int ?? 0
            guard reply.last?.int == 1 else { return count }
        }
    }

    private static let rering = QueueScript.script(PackageResources.RERING_lua)

    /// Makes sets, lists, bell and slots agree with the batches; returns the differences.
    /// * `isDry`: only reports.
    /// * `batches`: found by a scan of all keys.
    package func rering(isDry: Bool, batches: [String]) async throws(RedisError) -> [String] {
        let listed = Set(try await QueueCatalog(redis).listed() ?? [])
        let others = batches.filter { !listed.contains($0) }
        return (try await redis.run(Self.rering, [isDry ? "1" : ""] + others.map { RedisArgument($0) }).array ?? [])
            .compactMap(\.string)
    }

    package enum RepairStart: Sendable, Equatable {
        case taken
        case busy
        case gone
    }

    private static let take = QueueScript.step(PackageResources.TAKE_lua)

    package func take(_ batch: String, token: String) async throws(RedisError) -> RepairStart {
        switch try await redis.run(Self.take, [RedisArgument(batch), RedisArgument(token)]).string {
        case "OK": .taken
        case "BUSY": .busy
        default: .gone
        }
    }

    private static let recount = QueueScript.step(PackageResources.RECOUNT_lua)

    /// Recounts all outcomes, piece by piece; ``tally(_:token:)`` then applies the counts. Returns the number of invalid outcome bytes, and
    /// the first index after all outcomes; nil if the repair has lost the batch.
    /// * `limit`: URLs of the list.
    package func recount(_ batch: String, token: String, limit: Int) async throws(RedisError) -> (wrong: Int, end: Int)?
    {
        var (from, wrong, end) = (0, 0, 0)
        while true {
            let reply = try await recountPiece(batch, token: token, from: from, limit: limit)
            let numbers = reply.dropFirst().map { Int(plausible: $0) ?? 0 }
            switch reply.first {
            case "OK":
                wrong += numbers[1]
                end = max(end, numbers[2])
                if numbers[0] < Self.piece { return (wrong, end) }
                from += Self.piece
            // The reply of the previous call was lost.
            case "AT": from = numbers[0]
            default: return nil
            }
        }
    }

    private static let piece = 1 << 16

    /// The reply to one piece of ``recount(_:token:limit:)``.
    func recountPiece(_ batch: String, token: String, from: Int, limit: Int) async throws(RedisError) -> [String] {
        let arguments = [
            RedisArgument(batch), RedisArgument(token), RedisArgument(from), RedisArgument(Self.piece),
            RedisArgument(limit),
        ]
        return (try await redis.run(Self.recount, arguments).array ?? []).compactMap(\.string)
    }

    private static let tally = QueueScript.step(PackageResources.TALLY_lua)

    package func tally(_ batch: String, token: String) async throws(RedisError) -> [(name: String, old: Int, new: Int)]
    {
        let words = try await redis.run(Self.tally, [RedisArgument(batch), RedisArgument(token)]).array ?? []
        return stride(from: 0, to: words.count - 2, by: 3).map {
            (words[$0].string ?? "", words[$0 + 1].int ?? 0, words[$0 + 2].int ?? 0)
        }
    }

    private static let hold = QueueScript.step(PackageResources.HOLD_lua)

    /// Starts or renews the hold of a batch; returns its number of pushed URLs, nil if the hold was interrupted.
    package func hold(_ batch: String, token: String, begins: Bool) async throws(RedisError) -> Int? {
        let arguments = [RedisArgument(batch), RedisArgument(token), begins ? "1" : ""]
        let reply = try await redis.run(Self.hold, arguments).array ?? []
        return reply.first?.string == "OK" ? reply.last?.int ?? 0 : nil
    }

    private static let letGo = QueueScript.step(PackageResources.LETGO_lua)

    package func letGo(_ batch: String, token: String) async throws(RedisError) {
        _ = try await redis.run(Self.letGo, [RedisArgument(batch), RedisArgument(token)])
    }

    private static let sweep = QueueScript.step(PackageResources.SWEEP_lua)

    package func sweep(_ batch: String, token: String, element: [UInt8], isDead: Bool) async throws(RedisError) -> Bool
    {
        try await redis.run(
            Self.sweep, [RedisArgument(batch), RedisArgument(token), RedisArgument(element), isDead ? "1" : ""]
        ).int == 1
    }

    private static let raise = QueueScript.step(PackageResources.RAISE_lua)

    package func setPushed(
        _ batch: String, token: String, from old: Int, to new: Int, total: Int?
    ) async throws(RedisError) -> Bool {
        try await redis.run(
            Self.raise,
            [
                RedisArgument(batch), RedisArgument(token), RedisArgument(old), RedisArgument(new),
                RedisArgument(total.map(String.init) ?? ""),
            ]
        ).int == 1
    }

    package enum Refill: Sendable, Equatable {
        case taken
        /// Enough jobs wait: workers should take some first.
        case full
        /// The batch is over, or another repair has it.
        case closed
    }

    private static let refill = QueueScript.step(PackageResources.REFILL_lua)

    package func refill(
        _ batch: String, token: String, upTo end: Int, jobs: [PrefetchJob]
    ) async throws(RedisError) -> Refill {
        let arguments = [RedisArgument(batch), RedisArgument(token), RedisArgument(end)]
        switch try await redis.run(Self.refill, arguments + jobs.map { RedisArgument($0.encoded()) }).string {
        case "OK": return .taken
        case "FULL": return .full
        default: return .closed
        }
    }

    private static let prune = QueueScript.step(PackageResources.PRUNE_lua)

    /// * `indices`: as in the hash of details; some hundred.
    package func prune(_ batch: String, token: String, keep: Int, indices: [String]) async throws(RedisError) -> Int {
        let arguments = [RedisArgument(batch), RedisArgument(token), RedisArgument(keep)]
        return try await redis.run(Self.prune, arguments + indices.map { RedisArgument($0) }).int ?? 0
    }

    private static let finish = QueueScript.step(PackageResources.FINISH_lua)

    /// Returns the state of the batch, and the number of sets and lists that disagreed with it.
    @discardableResult
    package func finish(_ batch: String, token: String) async throws(RedisError) -> (state: String, wrong: Int) {
        let reply = try await redis.run(Self.finish, [RedisArgument(batch), RedisArgument(token)]).array ?? []
        return (reply.first?.string ?? "", reply.last?.int ?? 0)
    }

    private static let mend = QueueScript.step(PackageResources.RECORDS_lua)

    /// * `chunks`: fields of the hash; some hundred at most.
    package func repairRecords(
        _ batch: String, token: String, chunks: [String]
    ) async throws(RedisError) -> (dropped: Int, made: Int) {
        let arguments = [RedisArgument(batch), RedisArgument(token)] + chunks.map { RedisArgument($0) }
        let reply = try await redis.run(Self.mend, arguments).array ?? []
        return (reply.first?.int ?? 0, reply.last?.int ?? 0)
    }
}

package import Redis

package struct QueueJobs: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    package struct Claim: Sendable, Equatable {
        package var job: PrefetchJob
        package var nonce: String
        package var priority = PrefetchPriority.normal
        /// One byte per URL: 0 = open, otherwise settled already, by a worker that died or whose report was late.
        package var outcomes: [UInt8]
        /// Deaths of workers that had the job and reported nothing new of it.
        package var deliveries: Int
        /// Deaths while the job's one URL was being decoded; with no other image from the second on.
        package var marks: Int
        /// How many other workers gave it back because of their own network.
        package var doubts = 0
        /// How many workers were registered when it was claimed.
        package var workers = 1

        package var batch: BatchIdentity { BatchIdentity(id: job.batch, nonce: nonce) }
        /// The name of the claim in Redis.
        package var name: String { "\(job.name)@\(nonce)" }
    }

    package enum ClaimResult: Sendable, Equatable {
        case claimed([Claim])
        /// The worker is paused until the next change of its settings.
        case paused
        /// There are only jobs that others have to judge: this worker's rules refuse them.
        case left
        /// The registration is gone (reaped): the worker joins again under a new name.
        case lost
    }

    private static let claim = QueueScript.script(PackageResources.CLAIM_lua)

    /// Claims up to `count` jobs, and none after those that have `urls` URLs.
    /// * `sequence`: increased by the worker after each claim whose reply it has read.
    /// * `lease`: milliseconds from now until other workers may take the worker's jobs.
    /// * `above`: claims nothing unless it is the turn of a higher priority; nil: whosever turn it is.
    /// * `batch`: claims its jobs only; nil: those of all.
    package func claim(
        worker: String, sequence: Int, count: Int, lease: Int, urls: Int = .max, above: PrefetchPriority? = nil,
        batch: String? = nil
    ) async throws(RedisError) -> ClaimResult {
        let reply =
            try await redis.run(
                Self.claim,
                [
                    RedisArgument(worker), RedisArgument(sequence), RedisArgument(count), RedisArgument(lease),
                    RedisArgument(urls), RedisArgument(above?.rawValue ?? ""), RedisArgument(batch ?? ""),
                ]
            ).array ?? []
        switch reply.first?.string {
        case "PAUSED": return .paused
        case "LEFT": return .left
        case "OK": break
        default: return .lost
        }
        tell(reply.last?.array ?? [])
        var claims: [Claim] = []
        let workers = reply.dropFirst().first?.int ?? 1
        for start in stride(from: 2, to: reply.count - 6, by: 7) {
            let nonce = reply[start + 1].string ?? ""
            guard let payload = reply[start].bytes, let job = PrefetchJob(payload) else {
                try await bury(worker: worker, nonce: nonce, head: Array((reply[start].bytes ?? []).prefix(200)))
                continue
            }
            let priority = reply[start + 2].string.flatMap(PrefetchPriority.init(rawValue:)) ?? .normal
            var outcomes = reply[start + 3].bytes ?? []
            outcomes += Array(repeating: 0, count: max(0, job.entries.count - outcomes.count))
            claims.append(
                Claim(
                    job: job, nonce: nonce, priority: priority, outcomes: outcomes,
                    deliveries: reply[start + 4].int ?? 0, marks: reply[start + 5].int ?? 0,
                    doubts: reply[start + 6].int ?? 0, workers: workers))
        }
        return .claimed(claims)
    }

    private func tell(_ words: [RedisValue]) {
        for start in stride(from: 0, to: words.count - 2, by: 3) {
            let batch = words[start + 1].string ?? ""
            switch words[start].string {
            case "DEAD": redis.notice(.buried(batch: batch, head: words[start + 2].bytes ?? []))
            default: redis.notice(.broken(batch: batch, message: words[start + 2].string ?? ""))
            }
        }
    }

    private static let bury = QueueScript.script(PackageResources.BURY_lua)

    private func bury(worker: String, nonce: String, head: [UInt8]) async throws(RedisError) {
        let arguments = [RedisArgument(worker), RedisArgument(nonce), RedisArgument(head)]
        guard try await redis.run(Self.bury, arguments).int == 1 else { return }
        let words = String(decoding: head.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self).split(separator: " ")
        let batch = words.count > 2 ? words[2].prefix { $0 != ":" } : ""
        redis.notice(.buried(batch: String(batch), head: Array(head.prefix(64))))
    }

    private static let split = QueueScript.script(PackageResources.SPLIT_lua)

    package func split(worker: String, claim: Claim, into parts: [PrefetchJob]) async throws(RedisError) {
        var arguments: [RedisArgument] = [RedisArgument(worker), RedisArgument(claim.name)]
        for part in parts { arguments += [RedisArgument(part.name), RedisArgument(part.encoded())] }
        _ = try await redis.run(Self.split, arguments)
    }

    private static let blame = QueueScript.script(PackageResources.BLAME_lua)

    /// Returns a job of a lost worker in parts that have the URLs at these positions by themselves: they were being decoded.
    /// - Returns: how many of them died less than three times so before; 0 if the worker does not have the job.
    package func blame(worker: String, claim: String, positions: Set<Int>) async throws(RedisError) -> Int {
        let payload = try await redis.read([
            ["HGET", RedisArgument(redis.keys.owned(by: worker)), RedisArgument(claim)]
        ])[0].get()
        guard let bytes = payload.bytes, let job = PrefetchJob(bytes),
            positions.contains(where: job.entries.indices.contains)
        else { return 0 }
        var arguments: [RedisArgument] = [RedisArgument(worker), RedisArgument(claim)]
        for part in job.isolating(positions) {
            arguments += [
                RedisArgument(part.job.name), RedisArgument(part.job.encoded()), part.isIsolated ? "1" : "",
            ]
        }
        return try await redis.run(Self.blame, arguments).int ?? 0
    }

    private static let mark = QueueScript.script(PackageResources.MARK_lua)

    /// Marks a suspect job, by the name of its claim, or removes the mark (nil).
    package func mark(worker: String, claim: String?) async throws(RedisError) {
        _ = try await redis.run(Self.mark, [RedisArgument(worker), RedisArgument(claim ?? "")])
    }

    package enum Unstored: String, Sendable {
        /// Others have still to try it.
        case leave = "LEAVE"
        /// There is no other.
        case tryAgain = "AGAIN"
        /// Every worker that works has tried it.
        case end = "END"
    }

    private static let unstored = QueueScript.script(PackageResources.UNSTORED_lua)

    /// Records that a worker could not store the image of a URL although its disk takes others; returns whose turn it is.
    /// * `claim`: the name of the claim.
    /// * `tries`: how often the worker has tried.
    package func unstored(
        worker: String, claim: String, position: Int, tries: Int
    ) async throws(RedisError) -> Unstored {
        let arguments = [
            RedisArgument(worker), RedisArgument(claim), RedisArgument(position), RedisArgument(tries),
        ]
        return Unstored(rawValue: try await redis.run(Self.unstored, arguments).string ?? "") ?? .leave
    }

    private static let refused = QueueScript.script(PackageResources.REFUSED_lua)

    /// Records that a worker's own rules refuse URLs of a job; returns those that the rules of all others refuse too.
    /// * `claim`: the name of the claim.
    /// * `rules`: those of the worker, as in its record.
    package func refused(
        worker: String, claim: String, rules: String, positions: [Int]
    ) async throws(RedisError) -> Set<Int> {
        let arguments =
            [RedisArgument(worker), RedisArgument(claim), RedisArgument(rules)] + positions.map { RedisArgument($0) }
        let ended = try await redis.run(Self.refused, arguments).array ?? []
        return Set(ended.compactMap(\.int))
    }

    private static let keep = QueueScript.script(PackageResources.KEEP_lua)

    /// Gives back all claims of the worker in Redis except these; returns how many, nil if the worker is not registered.
    package func keep(worker: String, jobs: [String]) async throws(RedisError) -> Int? {
        let count = try await redis.run(Self.keep, [RedisArgument(worker)] + jobs.map { RedisArgument($0) }).int ?? -1
        return count < 0 ? nil : count
    }

    private static let release = QueueScript.script(PackageResources.RELEASE_lua)

    /// Gives back the named claims, or all. `leaving` ends the registration too.
    /// * `doubted`: those of the claims in which URLs failed by the worker's own network.
    @discardableResult
    package func release(
        worker: String, jobs: [String] = [], doubted: Set<ByteText> = [], leaving: Bool
    ) async throws(RedisError) -> Int {
        let names = jobs.map { RedisArgument(doubted.contains($0) ? "~\($0)" : $0) }
        return try await redis.run(Self.release, [RedisArgument(worker), leaving ? "1" : "0"] + names).int ?? 0
    }

    /// The dead-letter list, newest first: the first bytes of each element, and how many there are.
    package func dead(most: Int = 20) async throws(RedisError) -> (elements: [[UInt8]], count: Int) {
        let replies = try await redis.read([
            ["LRANGE", RedisArgument(redis.keys.dead), "0", RedisArgument(most - 1)],
            ["LLEN", RedisArgument(redis.keys.dead)],
        ])
        return ((try replies[0].get().array ?? []).compactMap(\.bytes), try replies[1].get().int ?? 0)
    }
}

package import Redis

extension PrefetchQueue {
    /// A job as a worker gets it.
    package struct Claim: Sendable, Equatable {
        /// The job.
        package var job: PrefetchJob
        /// The nonce of its batch.
        package var nonce: String
        /// One byte per URL: 0 = open, otherwise settled already, by a worker that died or whose report was late.
        package var outcomes: [UInt8]
        /// Deaths of workers that had the job and reported nothing new of it.
        package var deliveries: Int
        /// Deaths while the job's one URL was with the decoder and nothing else was in flight.
        package var marks: Int

        /// The batch it is of.
        package var batch: BatchIdentity { BatchIdentity(id: job.batch, nonce: nonce) }
        /// What the worker's claim of it is called in Redis.
        package var name: String { "\(job.name)@\(nonce)" }
    }

    /// What a worker is told.
    package enum ClaimResult: Sendable, Equatable {
        /// The jobs it has now; none where no batch has any.
        case claimed([Claim])
        /// It is paused: nothing for it until it is told otherwise.
        case paused
        /// Its registration is gone (reaped): it takes a new name and joins again.
        case lost
    }

    private static let claim = script(PackageResources.CLAIM_lua)

    /// Claims up to `count` jobs.
    ///
    /// * `sequence`: a number the worker raises after each claim whose reply it has read.
    /// * `lease`: milliseconds from now until others may take the worker's jobs.
    package func claim(
        worker: String, sequence: Int, count: Int, lease: Int
    ) async throws(RedisError) -> ClaimResult {
        let reply =
            try await run(
                Self.claim,
                [RedisArgument(worker), RedisArgument(sequence), RedisArgument(count), RedisArgument(lease)]
            ).array ?? []
        if reply.first?.string == "PAUSED" { return .paused }
        guard reply.first?.string == "OK" else { return .lost }
        tell(reply.last?.array ?? [])
        var claims: [Claim] = []
        for start in stride(from: 1, to: reply.count - 4, by: 5) {
            let nonce = reply[start + 1].string ?? ""
            guard let payload = reply[start].bytes, let job = PrefetchJob(payload) else {
                try await bury(worker: worker, nonce: nonce, head: Array((reply[start].bytes ?? []).prefix(200)))
                continue
            }
            var outcomes = reply[start + 2].bytes ?? []
            outcomes += Array(repeating: 0, count: max(0, job.entries.count - outcomes.count))
            claims.append(
                Claim(
                    job: job, nonce: nonce, outcomes: outcomes, deliveries: reply[start + 3].int ?? 0,
                    marks: reply[start + 4].int ?? 0))
        }
        return .claimed(claims)
    }

    private func tell(_ words: [RedisValue]) {
        for start in stride(from: 0, to: words.count - 2, by: 3) {
            let batch = words[start + 1].string ?? ""
            switch words[start].string {
            case "DEAD": notice(.buried(batch: batch, head: words[start + 2].bytes ?? []))
            default: notice(.broken(batch: batch, message: words[start + 2].string ?? ""))
            }
        }
    }

    private static let bury = script(PackageResources.BURY_lua)

    private func bury(worker: String, nonce: String, head: [UInt8]) async throws(RedisError) {
        let arguments = [RedisArgument(worker), RedisArgument(nonce), RedisArgument(head)]
        guard try await run(Self.bury, arguments).int == 1 else { return }
        let words = String(decoding: head.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self).split(separator: " ")
        let batch = words.count > 2 ? words[2].prefix { $0 != ":" } : ""
        notice(.buried(batch: String(batch), head: Array(head.prefix(64))))
    }

    private static let split = script(PackageResources.SPLIT_lua)

    /// Puts a job back as smaller ones.
    package func split(worker: String, claim: Claim, into parts: [PrefetchJob]) async throws(RedisError) {
        var arguments: [RedisArgument] = [RedisArgument(worker), RedisArgument(claim.name)]
        for part in parts { arguments += [RedisArgument(part.name), RedisArgument(part.encoded())] }
        _ = try await run(Self.split, arguments)
    }

    private static let mark = script(PackageResources.MARK_lua)

    /// Sets the mark of a suspect job, by the name of its claim, or takes it away (nil).
    package func mark(worker: String, claim: String?) async throws(RedisError) {
        _ = try await run(Self.mark, [RedisArgument(worker), RedisArgument(claim ?? "")])
    }

    private static let listed = script(PackageResources.LISTED_lua)

    /// The failed URLs among these, by position.
    /// * `timeToLive`: seconds after which an entry lapses; 0 = never.
    package func listed(
        _ urls: [String], timeToLive: Double
    ) async throws(RedisError) -> [Int: FailedURLEntry] {
        guard !urls.isEmpty else { return [:] }
        // Most are not on it. A command asks that for a quarter of what a script costs that is handed as many URLs.
        let members = try await read([
            [RedisArgument("SMISMEMBER"), RedisArgument(keys.failed)] + urls.map { RedisArgument($0) }
        ])
        let positions = (members.first?.array ?? []).enumerated().filter { $1.int == 1 }.map(\.offset)
        guard !positions.isEmpty else { return [:] }
        let reply =
            try await run(
                Self.listed, [RedisArgument(Int(timeToLive * 1000))] + positions.map { RedisArgument(urls[$0]) }
            ).array ?? []
        var found: [Int: FailedURLEntry] = [:]
        for start in stride(from: 0, to: reply.count - 1, by: 2) {
            guard let index = reply[start].int, positions.indices.contains(index) else { continue }
            let position = positions[index]
            found[position] = FailedURLEntry(meta: reply[start + 1].string ?? "")
        }
        return found
    }
}

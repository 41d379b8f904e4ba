package import Redis

package struct QueueReports: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    package struct Report: Sendable {
        package var job: String
        package var batch: BatchIdentity
        package var base: Int
        package var count: Int
        package var isFinal: Bool
        package var settled: [SettledEntry]
        /// The most details of skipped URLs the batch keeps.
        package var keepDetails: Int
        /// When the URLs that it lists lapse.
        package var ttl = BlacklistTTL(0)

        package init(
            job: String, batch: BatchIdentity, base: Int, count: Int, isFinal: Bool, settled: [SettledEntry],
            keepDetails: Int, ttl: BlacklistTTL = BlacklistTTL(0)
        ) {
            self.job = job
            self.batch = batch
            self.base = base
            self.count = count
            self.isFinal = isFinal
            self.settled = settled
            self.keepDetails = keepDetails
            self.ttl = ttl
        }
    }

    private static let report = QueueScript.script(PackageResources.REPORT_lua)

    package struct Answer: Sendable {
        /// The outcomes that this call was first to settle.
        package var first: [(position: Int, outcome: PrefetchOutcome)] = []
        /// Whether the batch is no longer running, gone, or replaced by one of the same id.
        package var isOver = false
        /// Why Redis refused all or part of it: it has to be sent again. nil: accepted.
        package var refusal: String?
    }

    /// Reports groups of outcomes in one round trip; `cache` has their images.
    package func send(
        _ reports: [Report], worker: String, cache: BatchCache? = nil
    ) async throws(RedisError) -> [Answer] {
        let groups = Self.groups(of: reports)
        let calls = groups.map { group in
            RedisScriptCall(
                Self.report, keys: [RedisArgument(redis.keys.root)],
                arguments: Self.arguments(of: group, worker: worker, cache: cache))
        }
        let replies = try await redis.repeating { () async throws(RedisError) in
            try ScriptRunner.withoutTransient(try await redis.connection.run(calls))
        }
        var results = [Answer](repeating: Answer(), count: reports.count)
        for (group, value) in zip(groups, replies) {
            let batch = group[0].report.batch.id
            // Unforeseen errors are blamed on this batch: the reports of others count.
            let error = value.error?.asError
            if let error, error.code != .reply { throw error }
            let reply = value.array ?? []
            switch (error, reply.first?.string) {
            case (nil, "OK") where reply.count > group.count:
                for ((number, report), said) in zip(group, reply.dropFirst()) {
                    results[number].first += report.first(said)
                }
            case (nil, "BROKEN"):
                let message = reply.last?.string ?? ""
                redis.notice(.broken(batch: batch, message: message))
                for (number, _) in group { results[number].refusal = message }
            case (nil, .some(let state)) where reply.count == 1:
                // An unknown state does not come from REPORT.
                let isOver = state == "gone" || BatchStatus.State(rawValue: state) != nil
                for (number, _) in group {
                    if isOver { results[number].isOver = true } else { results[number].refusal = state }
                }
            default:
                let message = error?.message ?? "the reply is none of REPORT's"
                redis.notice(.refused(batch: batch, message: message))
                for (number, _) in group { results[number].refusal = message }
            }
        }
        return results
    }

    /// Splits reports into calls so that none blocks Redis for milliseconds: up to 16 jobs of one batch, and up to 64 records besides
    /// outcomes, which cost some 10 us per URL. Only the last part of a report ends its job.
    private static func groups(of reports: [Report]) -> [[(number: Int, report: Report)]] {
        var groups: [[(number: Int, report: Report)]] = []
        var last: [BatchIdentity: (group: Int, heavy: Int)] = [:]
        for (number, report) in reports.enumerated() {
            for part in parts(of: report) {
                let count = part.settled.count { $0.isHeavy }
                if let (group, heavy) = last[part.batch], groups[group].count < 16, heavy + count <= Self.heavy,
                    groups[group][0].report.keepDetails == part.keepDetails
                {
                    groups[group].append((number, part))
                    last[part.batch] = (group, heavy + count)
                } else {
                    last[part.batch] = (groups.count, count)
                    groups.append([(number, part)])
                }
            }
        }
        return groups
    }

    private static func parts(of report: Report) -> [Report] {
        guard report.settled.count > heavy, report.settled.count(where: { $0.isHeavy }) > heavy else { return [report] }
        let starts = Array(stride(from: 0, to: report.settled.count, by: heavy))
        return starts.map { start in
            var part = report
            part.settled = Array(report.settled[start..<min(start + heavy, report.settled.count)])
            part.isFinal = report.isFinal && start == starts.last
            return part
        }
    }

    private static let heavy = 64

    /// Notes an address refused by the policy, for observers of the batch. Idempotent.
    package func noteRefusal(batch: String, host: String, message: String) async throws(RedisError) {
        let reply = try await redis.read([
            ["HSETNX", RedisArgument(redis.keys.refused(batch)), RedisArgument(host), RedisArgument(message)]
        ])[0]
        // A full Redis takes no notes, and no URL may wait for one; nor for a key of a wrong type.
        if let error = reply.error?.asError, error.code != .outOfMemory, error.code != .reply { throw error }
    }

    package func refusals(of batch: String) async throws(RedisError) -> [(host: String, message: String)] {
        let pairs =
            try await redis.read([["HGETALL", RedisArgument(redis.keys.refused(batch))]])[0].get().pairs ?? []
        return pairs.map { ($0.name, $0.value.string ?? "") }.sorted { ByteText($0.0) < ByteText($1.0) }
    }

    private static func arguments(
        of group: [(number: Int, report: Report)], worker: String, cache: BatchCache?
    ) -> [RedisArgument] {
        let first = group[0].report
        var arguments = [
            RedisArgument(worker), RedisArgument(first.batch.id), RedisArgument(first.batch.nonce),
            RedisArgument(first.keepDetails), RedisArgument(cache?.id ?? ""),
            RedisArgument(cache?.place ?? ""),
        ]
        for (_, report) in group { arguments += report.arguments() }
        return arguments
    }
}

extension QueueReports.Report {
    fileprivate func arguments() -> [RedisArgument] {
        var codes = [UInt8](repeating: 0, count: count)
        var sizes = [Int](repeating: 0, count: count)
        var details: [RedisArgument] = []
        var listed: [RedisArgument] = []
        var unlisted: [RedisArgument] = []
        for item in settled {
            codes[item.position] = item.outcome.rawValue
            sizes[item.position] = item.bytes
            guard item.isHeavy else { continue }
            let position = RedisArgument(item.position)
            // A batch that keeps no details needs none.
            if keepDetails > 0, let failure = item.failure { details += [position, RedisArgument(failure.encoded())] }
            if let url = item.list {
                let status = item.failure?.httpStatus ?? 0
                let tail = "\(item.outcome.name) \(status) \(batch.id) \(item.failure?.detail ?? "")"
                let lapse = ttl.milliseconds(item.outcome, httpStatus: item.failure?.httpStatus)
                listed += [position, RedisArgument(url), RedisArgument(lapse), RedisArgument(tail)]
            }
            if let url = item.unlist { unlisted += [position, RedisArgument(url)] }
        }
        var lengths: [UInt8] = []
        func append(_ value: some FixedWidthInteger) { withUnsafeBytes(of: value.bigEndian) { lengths += $0 } }
        // Without downloads there are no lengths for Redis to add up.
        let all = zip(codes, sizes).filter { $0.0 != 0 }.map { UInt32(clamping: $0.1) }
        let sum = all.reduce(0) { $0 + UInt64($1) }
        if sum > 0 {
            append(sum)
            for size in all { append(size) }
        }
        return [
            RedisArgument(job), isFinal ? "1" : "0", RedisArgument(codes), RedisArgument(lengths),
            RedisArgument(FailureRecord.entries(of: settled)), RedisArgument(details.count / 2),
        ] + details + [RedisArgument(listed.count / 4)] + listed + [RedisArgument(unlisted.count / 2)] + unlisted
    }

    /// The outcomes REPORT was first to settle.
    fileprivate func first(_ said: RedisValue) -> [(position: Int, outcome: PrefetchOutcome)] {
        if said.int == 1 { return settled.map { ($0.position, $0.outcome) }.sorted { $0.position < $1.position } }
        return (said.bytes ?? []).enumerated().compactMap { position, code in
            PrefetchOutcome(code: code).map { (position, $0) }
        }
    }
}

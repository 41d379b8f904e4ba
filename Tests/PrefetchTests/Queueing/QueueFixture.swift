import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

/// A queue of its own on a Redis that the tests of the queue share.
struct QueueFixture {
    private static let server = Task { try await RedisServer() }

    let queue: PrefetchQueue

    /// * `server`: nil: the shared one.
    init(on server: RedisServer? = nil) async throws {
        let url = if let server { server.url } else { try await Self.server.value.url }
        queue = PrefetchQueue(
            connection: RedisConnection(try RedisConfiguration(url: url), name: "test"),
            name: "q\(UInt64.random(in: 0...UInt64.max))")
    }

    var keys: PrefetchKeys { queue.keys }

    /// One command; for looking and for breaking things on purpose.
    @discardableResult
    func redis(_ words: String...) async throws -> RedisValue {
        try await queue.connection.command(words.map { RedisArgument($0) })
    }

    func field(_ name: String, of batch: String) async throws -> String? {
        try await redis("HGET", keys.batch(batch), name).string
    }

    /// A new batch, running and empty.
    @discardableResult
    func open(
        _ id: String = "b", priority: PrefetchPriority = .normal, fields: [(String, String)] = []
    ) async throws -> String {
        let all = [("priority", priority.rawValue), ("details", "1000")] + fields
        return try #require(try await queue.batches.open(id: id, nonce: id, exactly: true, fields: all))
    }

    /// Jobs with consecutive URLs, beginning at an index.
    static func jobs(_ batch: String, from base: Int = 0, sizes: [Int]) -> [PrefetchJob] {
        var at = base
        return sizes.map { size in
            defer { at += size }
            return PrefetchJob(
                batch: batch, base: at,
                entries: (at..<(at + size)).map { .init(line: $0 + 1, url: "http://h/\(batch)/\($0)") })
        }
    }

    /// Pushes jobs of these sizes behind `offset` URLs.
    @discardableResult
    func push(
        _ batch: String = "b", offset: Int = 0, sizes: [Int], window: String = "all"
    ) async throws -> QueueBatches.PushResult {
        try await queue.batches.push(
            batch: batch, offset: offset, window: window, count: sizes.reduce(0, +),
            jobs: Self.jobs(batch, from: offset, sizes: sizes).map { $0.encoded() })
    }

    /// Opens, pushes and seals.
    func fill(_ batch: String = "b", sizes: [Int], fields: [(String, String)] = []) async throws {
        try await open(batch, fields: fields)
        try await push(batch, sizes: sizes)
        _ = try await queue.batches.seal(batch: batch, total: sizes.reduce(0, +))
    }

    func join(_ workers: String...) async throws {
        for worker in workers { #expect(try await queue.workers.join(worker: worker, lease: 60_000, about: [])) }
    }

    /// The lease of a worker ran out a while ago.
    func expire(_ worker: String) async throws {
        try await redis("ZADD", keys.workers, "XX", "1", worker)
    }

    func claim(_ worker: String, _ sequence: Int, count: Int = 1) async throws -> [QueueJobs.Claim] {
        guard
            case .claimed(let claims) = try await queue.jobs.claim(
                worker: worker, sequence: sequence, count: count, lease: 60_000)
        else {
            Issue.record("\(worker) is lost")
            return []
        }
        return claims
    }

    /// A report of the first URLs of a job: one outcome each, nil = nothing to say. The nonce of ``open(_:priority:fields:)`` is the id.
    static func report(
        _ job: PrefetchJob, _ outcomes: [PrefetchOutcome?], isFinal: Bool = true, keepDetails: Int = 1000,
        nonce: String? = nil,
        change: (inout SettledEntry) -> Void = { _ in }
    ) -> QueueReports.Report {
        let settled = outcomes.enumerated().compactMap { position, outcome in
            outcome.map { outcome in
                var item = SettledEntry(position: position, outcome: outcome)
                if outcome == .downloaded { item.bytes = 100 }
                if outcome.isSkipped {
                    item.failure = FailureDetail(
                        line: job.entries[position].line, url: job.entries[position].url, outcome: outcome, tries: 1,
                        detail: "no")
                }
                // As a worker does under the default policy.
                if outcome == .poison { item.list = job.entries[position].url }
                change(&item)
                return item
            }
        }
        return QueueReports.Report(
            job: job.name, batch: BatchIdentity(id: job.batch, nonce: nonce ?? job.batch), base: job.base,
            count: job.entries.count, isFinal: isFinal,
            settled: settled,
            keepDetails: keepDetails)
    }

    /// Reports every URL of a job as this outcome; returns how many this call was first to settle, nil where the batch is over.
    @discardableResult
    func finish(_ job: PrefetchJob, _ worker: String, _ outcome: PrefetchOutcome = .downloaded) async throws -> Int? {
        let report = Self.report(job, Array(repeating: outcome, count: job.entries.count))
        return try await queue.reports.send([report.current(in: queue)], worker: worker)[0].counted?.count
    }

    /// What does not agree in these batches.
    func findings(_ batches: String...) async throws -> [String] {
        var found: [String] = []
        for batch in batches {
            found += try await BatchCheck(queue: queue, batch: batch).run().map { "\($0.invariant) \($0.message)" }
        }
        return found
    }
}

extension Blacklist {
    func listed(_ urls: [String]) async throws(RedisError) -> [Int: FailedURLEntry] {
        try await listed(urls, ttl: BlacklistTTL()).mapValues(\.entry)
    }
}

extension QueueReports.Report {
    /// The same of the batch that has its name now.
    func current(in queue: PrefetchQueue) async throws -> Self {
        var report = self
        report.batch.nonce = try await queue.batches.status(of: batch.id)?.nonce ?? ""
        return report
    }
}

extension PrefetchJob {
    /// What a claim of it is called where its batch is one of ``QueueFixture/open(_:priority:fields:)``.
    var claimName: String { "\(name)@\(batch)" }

    /// The same as a claim.
    var claim: QueueJobs.Claim {
        QueueJobs.Claim(
            job: self, nonce: batch, outcomes: Array(repeating: 0, count: entries.count), deliveries: 0, marks: 0)
    }
}

extension QueueReports.Answer {
    /// The outcomes that this call was first to settle; nil if the batch is over, or refused them.
    var counted: [(position: Int, outcome: PrefetchOutcome)]? { isOver || refusal != nil ? nil : first }
}

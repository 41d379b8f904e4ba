import Redis
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

/// What becomes of failed URLs whose time on the list is over.
@Suite("Parole of failed URLs", .timeLimit(.minutes(5)))
struct ParoleTests {
    private let f: QueueFixture
    private static let url = "http://h/gone"
    private static let ttl = BlacklistTTL(10)

    /// A queue with two workers, and a URL that one of their batches has listed with 404.
    init() async throws {
        f = try await QueueFixture()
        try await f.join("w1", "w2")
        try await report(try await job("first", "w1"), "w1", .httpError, 404)
    }

    /// A claim of a new batch with one URL.
    private func job(_ batch: String, _ worker: String) async throws -> QueueJobs.Claim {
        try await f.fill(batch, sizes: [1])
        return try await claim(worker)
    }

    private func claim(_ worker: String) async throws -> QueueJobs.Claim {
        let known = try await f.redis("HGET", f.keys.owned(by: worker), "#seq").int ?? 0
        return try #require(try await f.claim(worker, known + 1).first)
    }

    /// The job's only URL stands for the failed one.
    private func report(
        _ claim: QueueJobs.Claim, _ worker: String, _ outcome: PrefetchOutcome, _ status: Int? = nil
    ) async throws {
        var report = QueueFixture.report(claim.job, [outcome]) { item in
            item.failure?.httpStatus = status
            let isListed = BlacklistTTL.Reason(outcome, httpStatus: status) != nil
            item.list = isListed ? Self.url : nil
            item.unlist = outcome.isSkipped ? nil : Self.url
        }
        report.ttl = Self.ttl
        #expect(try await f.queue.reports.send([report], worker: worker)[0]?.count == 1)
    }

    private enum Standing { case free, listed, given }

    private func standing(_ worker: String, _ claim: QueueJobs.Claim) async throws -> Standing {
        let listed = try await f.queue.failedURLs.listed(
            [Self.url], worker: worker, claim: claim.name, ttl: BlacklistTTL())
        return listed[0].map { $0.isOnParole ? .given : .listed } ?? .free
    }

    private func standings(_ callers: (String, QueueJobs.Claim)...) async throws -> [Standing] {
        var all: [Standing] = []
        for (worker, claim) in callers { all.append(try await standing(worker, claim)) }
        return all
    }

    private func pass(_ seconds: Int) async throws {
        try await f.redis("HINCRBY", f.keys.clock, "ahead", "\(seconds * 1000)")
    }

    private func entry() async throws -> FailedURLEntry? { try await f.queue.failedURLs.find(Self.url).entry }

    @Test(
        "Of two workers with two batches one requests a lapsed URL, for the other it is listed; an image takes it off")
    func success() async throws {
        let (a, b) = (try await job("a", "w1"), try await job("b", "w2"))
        #expect(try await standings(("w1", a), ("w2", b)) == [.listed, .listed])
        try await pass(11)
        let before = try await f.queue.failedURLs.find(Self.url)
        #expect(before.entry?.isDue(at: before.at) == true && before.worker == nil)
        #expect(try await standings(("w1", a), ("w2", b)) == [.given, .listed])
        // The reply was lost.
        #expect(try await standings(("w1", a), ("w2", b)) == [.given, .listed])
        #expect(try await f.queue.failedURLs.find(Self.url).worker == "w1")
        // Another job of the same worker is another one.
        let other = try await job("c", "w1")
        #expect(try await standing("w1", other) == .listed)
        try await report(a, "w1", .downloaded)
        #expect(try await standing("w2", b) == .free)
        #expect(try await f.redis("EXISTS", f.keys.failedParole).int == 0)
    }

    @Test("The same failure lists it for twice as long, eight times at most; another one begins anew")
    func failure() async throws {
        var first = try #require(try await entry())
        #expect(first.factor == 1 && first.next == first.last + 10_000)
        for (round, factor) in [2, 4, 8, 8].enumerated() {
            try await pass(first.factor * 10 + 1)
            let claim = try await job("again\(round)", "w2")
            #expect(try await standing("w2", claim) == .given)
            try await report(claim, "w2", .httpError, 404)
            first = try #require(try await entry())
            #expect(first.factor == factor && first.next == first.last + factor * 10_000 && first.count == round + 2)
            #expect(try await standing("w1", try await job("other\(round)", "w1")) == .listed)
        }
        // A request that was not on parole, of --retry-failed, says nothing of that.
        try await report(try await job("retried", "w1"), "w1", .httpError, 404)
        #expect(try await entry()?.factor == 8)
        try await pass(81)
        let claim = try await job("changed", "w1")
        #expect(try await standing("w1", claim) == .given)
        try await report(claim, "w1", .httpError, 410)
        #expect(try await entry()?.factor == 1)
    }

    @Test("Without a result it stays on parole for another worker: a transient failure, a death, a cancelled batch")
    func transient() async throws {
        try await pass(11)
        let (a, b) = (try await job("a", "w1"), try await job("b", "w2"))
        #expect(try await standings(("w1", a), ("w2", b)) == [.given, .listed])
        try await report(a, "w1", .timeout)
        #expect(try await standing("w2", b) == .given)
        // The worker dies: its claim, the lease of the request, goes to the next.
        let c = try await job("c", "w1")
        #expect(try await standing("w1", c) == .listed)
        try await f.expire("w2")
        #expect(try await standing("w1", c) == .listed)
        _ = try await f.queue.workers.reap()
        #expect(try await standing("w1", c) == .given)
        // A worker whose claim is gone is given nothing.
        #expect(try await standing("w2", b) == .listed)
        _ = try await f.queue.batches.cancel(batch: "c")
        try await f.queue.jobs.release(worker: "w1", jobs: [c.name], leaving: false)
        let again = try await claim("w1")
        #expect(again.name == b.name)
        #expect(try await standing("w1", again) == .given)
        #expect(try await entry()?.factor == 1)
    }

    @Test("A lapsed URL that is listed by hand, or taken off, is on parole no more")
    func byHand() async throws {
        try await pass(11)
        let claim = try await job("a", "w1")
        #expect(try await standing("w1", claim) == .given)
        _ = try await f.queue.failedURLs.add([Self.url])
        #expect(try await standing("w1", claim) == .listed)
        #expect(try await f.queue.failedURLs.find(Self.url).worker == nil)
        _ = try await f.queue.failedURLs.remove([Self.url])
        #expect(try await standing("w1", claim) == .free)
    }
}

import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("The owners of shards in the queue", .timeLimit(.minutes(5)))
struct ShardQueueTests {
    private let batch = BatchIdentity(id: "b", nonce: "b")
    private let a = QueueShards.Writer(name: "a", cache: "one")
    private let b = QueueShards.Writer(name: "b", cache: "one")

    private func count(
        _ f: QueueFixture, _ writer: QueueShards.Writer, from ended: Int = 0
    ) async throws -> [QueueShards.Lines]? {
        try await f.queue.shards.count(
            [(0, 0..<4, min(ended, 4)), (1, 4..<7, 0)], of: batch, for: writer)
    }

    /// What is written of how many, and who owns what.
    private func state(_ f: QueueFixture) async throws -> [String] {
        let status = try #require(try await f.queue.batches.status(of: "b"))
        let fields = try await f.redis("HGETALL", f.keys.shards("b")).fields ?? [:]
        let owners = fields.filter { !$0.key.hasPrefix("@") }
        return ["\(status.shards?.written ?? -1) \(status.shards?.bytes ?? -1) \(status.shards?.open ?? -1)"]
            + owners.map { "\($0.key): \($0.value.string ?? "")" }.sorted()
    }

    /// Its lease has ended.
    private func expire(_ writer: QueueShards.Writer, _ f: QueueFixture) async throws {
        try await f.redis("HSET", f.keys.shards("b"), "@" + writer.name, "1")
    }

    private func report(_ f: QueueFixture, _ claim: QueueJobs.Claim, in cache: String = "one") async throws {
        let outcomes: [PrefetchOutcome?] = claim.job.entries.indices.map { $0 == 1 ? .httpError : .downloaded }
        _ = try await f.queue.reports.send(
            [QueueFixture.report(claim.job, outcomes)], worker: "w",
            cache: BatchCache(id: cache, host: "host", directory: "/\(cache)"))
    }

    /// Seven lines in two jobs.
    private func fixture() async throws -> (QueueFixture, [QueueJobs.Claim]) {
        let f = try await QueueFixture()
        try await f.fill(sizes: [4, 3])
        try await f.join("w")
        return (f, try await f.claim("w", 1, count: 2))
    }

    @Test("One writer at a time owns a shard until it is recorded; who has lost it cannot record it")
    func owners() async throws {
        let (f, claims) = try await fixture()
        #expect(try await count(f, a) == [.ended(0), .ended(0)])
        #expect(try await count(f, b) == [.owned, .owned])
        #expect(try await f.queue.shards.take(0, of: batch, for: b) == false)
        #expect(try await state(f) == ["0 0 0", "0: a", "1: a"])
        _ = try await f.queue.reports.send(
            [QueueFixture.report(claims[0].job, [.downloaded, nil, .downloaded, nil], isFinal: false)], worker: "w")
        #expect(try await count(f, a) == [.ended(1), .ended(0)])
        #expect(try await state(f)[0] == "0 0 1")
        for claim in claims { try await report(f, claim) }
        for _ in 0..<2 { #expect(try await count(f, a, from: 1) == [.ended(4), .ended(3)]) }
        for _ in 0..<2 { #expect(try await f.queue.shards.take(0, of: batch, for: a) == true) }
        for _ in 0..<2 { #expect(try await f.queue.shards.record(0, of: batch, bytes: 50, for: a) == true) }
        #expect(try await state(f) == ["1 50 0", "0: a 50", "1: a"])

        // It is silent while it writes the second one.
        try await expire(a, f)
        #expect(try await count(f, b, from: 4) == [.ended(4), .ended(3)])
        #expect(try await state(f) == ["1 50 0", "0: a 50", "1: b"])
        for _ in 0..<2 { #expect(try await f.queue.shards.record(1, of: batch, bytes: 30, for: a) == false) }
        #expect(try await f.queue.shards.take(1, of: batch, for: a) == false)
        #expect(try await f.queue.shards.keep(1, of: batch, for: a) == false)
        #expect(try await f.queue.shards.keep(1, of: batch, for: b) == true)
        #expect(try await f.queue.shards.record(1, of: batch, bytes: 31, isFound: true, for: a) == false)
        #expect(try await f.queue.shards.record(1, of: batch, bytes: 32, for: b) == true)
        #expect(try await state(f) == ["2 82 0", "0: a 50", "1: b 32"])

        for writer in [a, b] { #expect(try await f.queue.shards.keep(1, of: batch, for: writer) == false) }
        #expect(try await state(f) == ["2 82 0", "0: a 50", "1: b 32"])

        // One that is written may be written again by anybody, but not by two.
        #expect(try await f.queue.shards.record(1, of: batch, bytes: 9, isFound: true, for: a) == true)
        #expect(try await f.queue.shards.take(1, of: batch, for: a) == true)
        #expect(try await state(f) == ["1 50 0", "0: a 50", "1: a"])
        #expect(try await f.queue.shards.take(1, of: batch, for: b) == false)
        #expect(try await f.queue.shards.record(1, of: batch, bytes: 40, for: a) == true)
        #expect(try await state(f) == ["2 90 0", "0: a 50", "1: a 40"])
    }

    @Test("What a writer owned is free when it leaves, when its lease ends, and for one that knows that no other lives")
    func free() async throws {
        for way in ["leave", "lease", "alone"] {
            let (f, claims) = try await fixture()
            for claim in claims { try await report(f, claim) }
            _ = try await count(f, a)
            var other = b
            switch way {
            case "leave": try await f.queue.shards.leave(a, of: batch)
            case "lease": try await expire(a, f)
            default: other.isAlone = true
            }
            #expect(try await count(f, other) == [.ended(4), .ended(3)], "\(way)")
            #expect(try await f.queue.shards.record(0, of: batch, bytes: 1, for: a) == false, "\(way)")
            #expect(try await state(f) == ["0 0 0", "0: b", "1: b"], "\(way)")
            // Found by somebody who owns none.
            try await f.queue.shards.leave(b, of: batch)
            #expect(try await f.queue.shards.record(0, of: batch, bytes: 7, isFound: true, for: a) == true, "\(way)")
            #expect(try await state(f) == ["1 7 0", "0: a 7", "1: b"], "\(way)")
        }
    }

    @Test("What an earlier run has written, perhaps as other shards, is not counted for one that begins alone")
    func earlier() async throws {
        let (f, claims) = try await fixture()
        for claim in claims { try await report(f, claim) }
        _ = try await count(f, a)
        #expect(try await f.queue.shards.record(1, of: batch, bytes: 50, for: a) == true)
        #expect(try await state(f) == ["1 50 0", "0: a", "1: a 50"])
        var other = b
        other.isAlone = true
        for _ in 0..<2 {
            #expect(try await f.queue.shards.count([(0, 0..<7, 0)], of: batch, for: other) == [.ended(7)])
            #expect(try await state(f) == ["0 0 0", "0: b"])
        }
    }

    @Test("A shard of which another cache has an image is not its owner's to write")
    func elsewhere() async throws {
        let (f, claims) = try await fixture()
        try await report(f, claims[0])
        #expect(try await count(f, a) == [.ended(4), .ended(0)])
        try await report(f, claims[1], in: "two")
        #expect(try await count(f, a) == [.ended(4), .elsewhere])
        let other = QueueShards.Writer(name: "c", cache: "two")
        try await f.queue.shards.leave(a, of: batch)
        #expect(try await count(f, other) == [.elsewhere, .ended(3)])
        let none = QueueShards.Writer(name: "d", cache: "three")
        try await f.queue.shards.leave(other, of: batch)
        #expect(try await count(f, none) == [.elsewhere, .elsewhere])
    }

    @Test("Lines without an image are in no cache")
    func failures() async throws {
        let (f, claims) = try await fixture()
        for (claim, cache) in zip(claims, ["one", "two"]) {
            let outcomes = claim.job.entries.map { _ in PrefetchOutcome.httpError }
            _ = try await f.queue.reports.send(
                [QueueFixture.report(claim.job, outcomes)], worker: "w",
                cache: BatchCache(id: cache, host: "host", directory: "/"))
        }
        #expect(try await count(f, a) == [.ended(4), .ended(3)])
    }

    @Test("Owners go with their batch, and those of an earlier one own nothing of a later one")
    func gone() async throws {
        let (f, claims) = try await fixture()
        _ = try await count(f, a)
        for claim in claims { try await report(f, claim) }
        #expect(try await f.redis("PTTL", f.keys.shards("b")).int == -1)
        _ = try await f.queue.batches.open(
            id: "k", nonce: "k", exactly: true, fields: [("priority", "normal"), ("keep", "60")])
        let kept = BatchIdentity(id: "k", nonce: "k")
        _ = try await f.queue.batches.seal(batch: "k", total: 0)
        #expect(try await f.queue.shards.take(0, of: kept, for: a) == true)
        let time = try #require(try await f.redis("PTTL", f.keys.shards("k")).int)
        #expect((1...60_000).contains(time))
        #expect(try await f.queue.batches.remove(batch: "b") == .removed)
        #expect(try await f.redis("EXISTS", f.keys.shards("b")).int == 0)
        try await f.open()
        let earlier = BatchIdentity(id: "b", nonce: "earlier")
        for identity in [earlier, BatchIdentity(id: "no", nonce: "no"), BatchIdentity(id: "no", nonce: "")] {
            #expect(try await f.queue.shards.count([(0, 0..<4, 0)], of: identity, for: a) == nil)
            #expect(try await f.queue.shards.take(0, of: identity, for: a) == nil)
            #expect(try await f.queue.shards.record(0, of: identity, bytes: 1, for: a) == nil)
            #expect(try await f.redis("EXISTS", f.keys.shards(identity.id)).int == 0)
        }
        #expect(try await f.findings("b") == [])
    }
}

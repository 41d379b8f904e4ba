import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Removing batches", .timeLimit(.minutes(5)))
struct RemovingTests {
    private func keys(_ f: QueueFixture, of batch: String) async throws -> [String] {
        let all = try await f.redis("KEYS", "prefetch:{\(f.queue.catalog.queueName)}:*").array ?? []
        return all.compactMap(\.string).filter { $0.contains(":\(batch)") }.sorted()
    }

    @Test("Nothing of a batch is left, and nothing of another is touched")
    func all() async throws {
        let f = try await QueueFixture()
        for id in ["xa", "xb"] { try await f.fill(id, sizes: [1, 2], fields: [("slot", "home")]) }
        try await f.join("w")
        for sequence in 1...4 {
            for claim in try await f.claim("w", sequence) {
                try await f.finish(claim.job, "w", sequence < 3 ? .httpError : .downloaded)
            }
            try await f.queue.reports.noteRefusal(batch: "xa", host: "h", message: "m")
        }
        // A batch gives its slot back when it ends; one that was left over goes with its batch.
        try await f.redis("HSET", "prefetch:{\(f.queue.catalog.queueName)}:slots", "home", "xb")
        #expect(try await keys(f, of: "xa").count == 6)
        let before = try await keys(f, of: "xb")
        #expect(try await f.queue.batches.remove(batch: "xa") == .removed)
        #expect(try await keys(f, of: "xa") == [])
        #expect(try await keys(f, of: "xb") == before)
        #expect(try await f.queue.catalog.ids() == ["xb"])
        // The slot is the other's.
        #expect(try await f.redis("HGET", "prefetch:{\(f.queue.catalog.queueName)}:slots", "home").string == "xb")
        #expect(try await f.findings("xb") == [])
        // A lost reply: again.
        #expect(try await f.queue.batches.remove(batch: "xa") == .gone)
        #expect(try await f.queue.batches.remove(batch: "xb") == .removed)
        #expect(try await f.redis("HLEN", "prefetch:{\(f.queue.catalog.queueName)}:slots").int == 0)
    }

    @Test("What is left of a batch whose hash somebody deleted goes too")
    func remains() async throws {
        let f = try await QueueFixture()
        try await f.fill("xa", sizes: [1, 2])
        try await f.redis("DEL", f.keys.batch("xa"))
        #expect(try await f.queue.batches.remove(batch: "xa") == .gone)
        #expect(try await keys(f, of: "xa") == [])
        #expect(try await f.redis("LLEN", f.keys.bell).int == 0)
        #expect(try await f.queue.catalog.running() == [])
    }

    @Test("A running batch stays, and one that was retried stays for as long as its retry")
    func refused() async throws {
        let f = try await QueueFixture()
        try await f.fill("xa", sizes: [1])
        #expect(try await f.queue.batches.remove(batch: "xa") == .running)
        try await f.join("w")
        let job = try await f.claim("w", 1)[0].job
        try await f.finish(job, "w", .timeout)
        let status = try #require(try await f.queue.batches.status(of: "xa"))
        #expect(try await f.queue.batches.retry(of: status, root: "xa", host: "h", nonce: "n") == "xa.2")
        #expect(try await f.queue.batches.remove(batch: "xa") == .retriedBy("xa.2"))
        #expect(try await f.queue.batches.remove(batch: "xa.2") == .running)
        _ = try await f.queue.batches.cancel(batch: "xa.2")
        #expect(try await f.queue.batches.remove(batch: "xa") == .retriedBy("xa.2"))
        #expect(try await f.queue.batches.remove(batch: "xa.2") == .removed)
        #expect(try await f.field("retried_by", of: "xa") == nil)
        #expect(try await f.findings("xa") == [])
        #expect(try await f.queue.batches.remove(batch: "xa") == .removed)
        #expect(try await keys(f, of: "xa") == [])
    }
}

import Redis
import TestSupport
import Testing

@testable import Prefetch
@testable import Queue

@Suite("Slots", .timeLimit(.minutes(5)))
struct SlotTests {
    private func open(
        _ f: QueueFixture, _ id: String, slot: String?, nonce: String? = nil
    ) async throws -> QueueBatches.Opened? {
        try await f.queue.batches.open(id: id, nonce: nonce ?? id, exactly: false, slot: slot, fields: [("total", "1")])
    }

    @Test("A batch that takes a slot cancels the one that has it, exactly once, however often it is sent")
    func takes() async throws {
        let f = try await QueueFixture()
        #expect(try await open(f, "a", slot: "home") == .init(id: "a", replaced: nil))
        #expect(try await f.queue.batches.batch(inSlot: "home") == "a")
        #expect(try await open(f, "b", slot: "home") == .init(id: "b", replaced: "a"))
        #expect(try await f.queue.batches.status(of: "a")?.state == .cancelled)
        let ended = try await f.field("ended", of: "a")
        // The reply was lost: the same answer, and nobody else is cancelled.
        #expect(try await open(f, "b", slot: "home") == .init(id: "b", replaced: "a"))
        #expect(try await f.queue.batches.status(of: "b")?.state == .running)
        #expect(try await f.field("ended", of: "a") == ended)
        #expect(try await f.queue.batches.batch(inSlot: "home") == "b")
        #expect(try await f.queue.batches.status(of: "b")?.slot == "home")
        #expect(try await f.findings("a", "b") == [])
    }

    @Test("Two slots, and batches without one, know nothing of each other")
    func independent() async throws {
        let f = try await QueueFixture()
        for (id, slot) in [("a", "home"), ("b", "list"), ("c", nil), ("d", nil)] as [(String, String?)] {
            #expect(try await open(f, id, slot: slot) == .init(id: id, replaced: nil))
        }
        #expect(try await f.queue.catalog.running() == ["a", "b", "c", "d"])
        #expect(try await f.queue.batches.status(of: "c")?.slot == nil)
        #expect(try await open(f, "e", slot: "list")?.replaced == "b")
        #expect(try await f.queue.catalog.running() == ["a", "c", "d", "e"])
    }

    @Test("A batch gives its slot back when it ends, and one that lost its slot takes nothing with it")
    func givesBack() async throws {
        let f = try await QueueFixture()
        _ = try await f.queue.batches.open(id: "a", nonce: "a", exactly: true, slot: "home", fields: [])
        try await f.push("a", sizes: [1])
        _ = try await f.queue.batches.seal(batch: "a", total: 1)
        try await f.join("w")
        try await f.finish(try await f.claim("w", 1)[0].job, "w")
        #expect(try await f.queue.batches.status(of: "a")?.state == .done)
        #expect(try await f.queue.batches.batch(inSlot: "home") == nil)
        #expect(try await open(f, "b", slot: "home")?.replaced == nil)
        _ = try await open(f, "c", slot: "home")
        _ = try await f.queue.batches.cancel(batch: "b")
        #expect(try await f.queue.batches.batch(inSlot: "home") == "c")
        _ = try await f.queue.batches.cancel(batch: "c")
        #expect(try await f.redis("EXISTS", f.keys.slots).int == 0)
    }

    @Test("A name that is taken leaves the slot as it was")
    func taken() async throws {
        let f = try await QueueFixture()
        _ = try await open(f, "a", slot: "home")
        let again = try await f.queue.batches.open(id: "a", nonce: "other", exactly: true, slot: "home", fields: [])
        #expect(again == nil)
        #expect(try await f.queue.batches.status(of: "a")?.state == .running)
    }
}

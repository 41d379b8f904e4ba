import Redis
import Testing
import WebImage

@testable import Prefetch

@Suite("The oldest open URLs", .timeLimit(.minutes(5)))
struct OpenURLTests {
    private func oldest(_ fixture: QueueFixture, _ batch: String = "b") async throws -> [OpenURL] {
        let status = try #require(try await fixture.queue.batches.status(of: batch))
        return try await fixture.queue.openURLs.oldest(of: status)
    }

    @Test("What is claimed comes first, then what waits in Redis, then what is not pushed")
    func order() async throws {
        let fixture = try await QueueFixture()
        try await fixture.open(fields: [("total", "10")])
        try await fixture.push(sizes: [2, 2])
        #expect(try await oldest(fixture).map(\.state) == [.queued, .queued, .queued, .queued, .notPushed])
        try await fixture.join("w")
        let job = try #require(try await fixture.claim("w", 1).first).job
        let urls = try await oldest(fixture)
        #expect(urls.map(\.index) == [0, 1, 2, 3, 4])
        #expect(urls.map(\.state) == [.claimed, .claimed, .queued, .queued, .notPushed])
        #expect(urls.map(\.line) == [1, 2, 3, 4, nil])
        #expect(urls[0].url == "http://h/b/0" && urls[0].host == "h" && urls[0].worker == "w" && urls[2].worker == nil)
        #expect(urls[4].detail == "6")
        try await fixture.finish(job, "w")
        #expect(try await oldest(fixture).map(\.index) == [2, 3, 4])
        _ = try await fixture.queue.batches.cancel(batch: "b")
        #expect(try await oldest(fixture).isEmpty)
    }

    @Test("The words of several workers are merged, whose job was claimed first in front; ended URLs are left out")
    func merging() async throws {
        let fixture = try await QueueFixture()
        try await fixture.fill(sizes: [3, 3])
        try await fixture.join("v", "w")
        let first = try #require(try await fixture.claim("v", 1).first).job
        let second = try #require(try await fixture.claim("w", 1).first).job
        #expect(first.base == 0 && second.base == 3)
        var retrying = OpenURLNote(batch: "b", index: 1, state: .retrying, claimed: 2_000, elapsed: 1_500)
        (retrying.remaining, retrying.tries, retrying.host, retrying.detail) = (
            9_000, 2, "cdn", "HTTP 503 (Retry-After)"
        )
        let ended = OpenURLNote(batch: "b", index: 0, state: .verifying, claimed: 2_000, elapsed: 10)
        let other = OpenURLNote(batch: "elsewhere", index: 1, state: .verifying, claimed: 99_000, elapsed: 10)
        let older = OpenURLNote(batch: "b", index: 5, state: .transferring, claimed: 30_000, elapsed: 700)
        for (worker, notes) in [("v", [ended, retrying, other]), ("w", [older])] {
            let text = notes.map { $0.encoded + "\n" }.joined()
            _ = try await fixture.queue.workers.beat(
                worker: worker, lease: 60_000, trouble: false, batches: [], about: [("oldest", text)])
        }
        let report = QueueFixture.report(first, [.downloaded, nil, nil], isFinal: false)
        _ = try await fixture.queue.reports.send([report], worker: "v")
        let urls = try await oldest(fixture)
        #expect(urls.map(\.index) == [5, 1])
        #expect(urls.map(\.state) == [.transferring, .retrying])
        #expect(urls[1].tries == 2 && urls[1].host == "cdn" && urls[1].detail == "HTTP 503 (Retry-After)")
        #expect(urls[1].until! - urls[1].since! == 10_500)
        #expect(urls[0].host == "h" && urls[0].worker == "w" && urls[0].line == 6)
    }

    @Test("A worker that has stopped speaking is named with the end of its lease")
    func silence() async throws {
        let fixture = try await QueueFixture()
        try await fixture.fill(sizes: [1])
        try await fixture.join("w")
        _ = try await fixture.claim("w", 1)
        try await fixture.expire("w")
        let url = try #require(try await oldest(fixture).first)
        #expect(url.state == .workerSilent && url.until == 1 && url.worker == "w")
    }

    @Test("A worker that has said what holds it is paused by that, and not silent, while its lease lasts")
    func trouble() async throws {
        let fixture = try await QueueFixture()
        try await fixture.fill(sizes: [1])
        try await fixture.join("w")
        _ = try await fixture.claim("w", 1)
        _ = try await fixture.queue.workers.beat(
            worker: "w", lease: 60_000, trouble: false, batches: [], about: [("trouble", "the disk is full")])
        // As if its next heartbeat were late.
        let now = try await fixture.queue.batches.status(of: "b")?.at ?? 0
        try await fixture.redis("ZADD", fixture.keys.workers, "XX", String(now + 20_000), "w")
        let url = try #require(try await oldest(fixture).first)
        #expect(url.state == .paused && url.detail == "the disk is full" && url.worker == "w" && url.until == nil)
        try await fixture.expire("w")
        #expect(try await oldest(fixture).first?.state == .workerSilent)
    }

    @Test("A note is one line, whatever is in it, and comes back as it went")
    func notes() throws {
        var note = OpenURLNote(batch: "b", index: 7, state: .retrying, claimed: 5, elapsed: 3)
        #expect(OpenURLNote(note.encoded[...]) == note)
        (note.remaining, note.tries, note.host, note.detail) = (0, 3, "h.example", "two words")
        #expect(OpenURLNote(note.encoded[...]) == note)
        note.host = "h\n" + String(repeating: "x", count: 500)
        note.detail = "a\nb" + String(repeating: "é", count: 500)
        #expect(!note.encoded.contains("\n") && note.encoded.utf8.count < 300)
        #expect(OpenURLNote(note.encoded[...])?.index == 7)
        #expect(OpenURLNote("b 7 flying 1 2 - 0 - ") == nil && OpenURLNote("") == nil)
    }
}

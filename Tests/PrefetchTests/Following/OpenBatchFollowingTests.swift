import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Following an open batch", .timeLimit(.minutes(5)))
struct OpenBatchFollowingTests {
    private let folder = TemporaryDirectory()

    /// Adds `http://NAME/0`, `http://NAME/1` … and returns the index of the first.
    private func add(_ f: QueueFixture, _ name: String, _ count: Int) async throws -> Int {
        folder.write(Array((0..<count).map { "http://\(name)/\($0)\n" }.joined().utf8), to: name)
        let appender = ListAppender(queue: f.queue, batch: "b", list: try URLList(path: folder.path(name)))
        let added = try await appender.add()
        try await appender.feed(added)
        return added.segment.base
    }

    private func settle(_ f: QueueFixture, _ index: Int, _ outcome: PrefetchOutcome = .downloaded) async throws {
        let job = PrefetchJob(batch: "b", base: index, entries: [.init(line: index + 1, url: "http://detail/\(index)")])
        _ = try await f.queue.reports.send([QueueFixture.report(job, [outcome]).current(in: f.queue)], worker: "w")
    }

    private func open(_ f: QueueFixture) async throws {
        var batch = NewBatch(list: nil)
        batch.isOpen = true
        batch.name = "b"
        _ = try await batch.open(in: f.queue)
    }

    @Test("The total grows with the lists, k runs on through them, and the end comes once, behind the seal")
    func grows() async throws {
        let f = try await QueueFixture()
        try await open(f)
        var log = FollowerLog(BatchEventReader(queue: f.queue, batch: "b", from: .beginning))
        try await log.look()
        #expect(log.lines == [])
        _ = try await add(f, "a", 2)
        try await settle(f, 1)
        try await log.read(2)
        _ = try await add(f, "c", 3)
        try await settle(f, 0, .badImage)
        try await settle(f, 4)
        try await log.read(6)
        // Everything it has has ended, and it is not over.
        for index in [2, 3] { try await settle(f, index) }
        try await log.read(10)
        try await log.look()
        #expect(!log.hasEnded && log.lines.count == 10)
        let last = try await add(f, "d", 1)
        #expect(last == 5)
        #expect(try await f.queue.lists.close(batch: "b") == .pushed(6))
        try await settle(f, 5)
        let lines = try await log.readToEnd()
        #expect(
            lines == [
                "progress 1/2", "didPrefetch http://a/1 1/2 downloaded", "progress 2/5",
                "didPrefetch http://a/0 2/5 badImage", "progress 3/5", "didPrefetch http://c/2 3/5 downloaded",
                "progress 4/5", "didPrefetch http://c/0 4/5 downloaded", "progress 5/5",
                "didPrefetch http://c/1 5/5 downloaded", "progress 6/6", "didPrefetch http://d/0 6/6 downloaded",
                "didFinish 5, 1", "completion 6, 1",
            ])
    }

    @Test("Who comes late has the same events, over more lists than are kept open, whatever became of one of them")
    func late() async throws {
        let f = try await QueueFixture()
        try await open(f)
        for index in 0..<20 { _ = try await add(f, "l\(index)", 2) }
        for index in 0..<40 { try await settle(f, index, index == 7 || index == 6 ? .dns : .hit) }
        _ = try await f.queue.lists.close(batch: "b")
        // Those of the list that has gone were skipped: Redis has their details.
        folder.write([], to: "l3")
        var log = FollowerLog(BatchEventReader(queue: f.queue, batch: "b", from: .beginning))
        let urls = try await log.readToEnd().filter { $0.hasPrefix("didPrefetch") }.map { $0.split(separator: " ")[1] }
        let expected = (0..<40).map { $0 == 6 || $0 == 7 ? "http://detail/\($0)" : "http://l\($0 / 2)/\($0 % 2)" }
        #expect(urls.map(String.init) == expected)
        folder.write([], to: "l4")
        var second = FollowerLog(BatchEventReader(queue: f.queue, batch: "b", from: .beginning))
        await #expect { try await second.readToEnd() } throws: { ($0 as? PrefetchError)?.kind == .unreadableList }
    }

    @Test(
        "A deadline that passes while nobody works is told by the follower that looks: the open ones as cancelled, the end once"
    )
    func deadline() async throws {
        let f = try await QueueFixture()
        try await f.open(fields: [("open", "1"), ("total", "0"), ("lines", "0"), ("limit", "300"), ("list", "")])
        _ = try await add(f, "a", 3)
        try await settle(f, 1)
        var log = FollowerLog(BatchEventReader(queue: f.queue, batch: "b", from: .beginning))
        let lines = try await log.readToEnd()
        #expect(lines.filter { $0.hasSuffix("cancelled") }.count == 2)
        #expect(lines.suffix(2) == ["didFinish 1, 2", "completion 3, 2"])
        #expect(try await f.queue.batches.status(of: "b")?.endedBy == .deadline)
    }
}

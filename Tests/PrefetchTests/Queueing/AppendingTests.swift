import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Open batches in Redis", .timeLimit(.minutes(5)))
struct AppendingTests {
    private func open(_ f: QueueFixture, _ fields: [(String, String)] = []) async throws {
        try await f.open(fields: [("open", "1"), ("total", "0"), ("lines", "0"), ("list", ""), ("hash", "")] + fields)
    }

    private func list(_ hash: String, _ total: Int, lines: Int? = nil) -> URLList {
        var list = URLList(path: "/lists/\(hash) of today", total: total, hash: hash)
        list.lines = lines ?? total
        return list
    }

    @discardableResult
    private func append(
        _ f: QueueFixture, _ list: URLList, nonce: String? = nil, again: Bool = false
    ) async throws -> QueueLists.AppendResult {
        try await f.queue.lists.append(
            list, to: "b", nonce: nonce ?? "n\(UInt64.random(in: 0...UInt64.max))", host: "h", again: again)
    }

    private func push(
        _ f: QueueFixture, _ segment: ListSegment, offset: Int, sizes: [Int], window: String = "all"
    ) async throws -> QueueBatches.PushResult {
        try await f.queue.batches.push(
            batch: "b", offset: offset, window: window, count: sizes.reduce(0, +), of: segment,
            jobs: QueueFixture.jobs("b", from: offset, sizes: sizes).map { $0.encoded() })
    }

    private func state(_ f: QueueFixture) async throws -> [String] {
        var state: [String] = []
        for name in ["state", "sealed", "closing", "pushed", "total", "lines"] {
            state.append(try await f.field(name, of: "b") ?? "-")
        }
        return state + (try await f.queue.lists.segments(of: "b").map { "\($0.base) \($0.line) \($0.hash)" })
    }

    @Test("OPEN makes the first list a list of the batch, once however often it is sent")
    func first() async throws {
        let f = try await QueueFixture()
        for _ in 0..<2 {
            try await f.open(fields: [
                ("open", "1"), ("total", "3"), ("lines", "5"), ("list", "/a b"), ("hash", "aa"), ("host", "h"),
            ])
        }
        let segment = try #require(try await f.queue.lists.segments(of: "b").first)
        #expect(try await f.queue.lists.segments(of: "b").count == 1)
        #expect(segment.number == 0 && segment.base == 0 && segment.line == 0 && segment.end == 3)
        #expect(segment.lines == 5 && segment.hash == "aa" && segment.host == "h" && segment.path == "/a b")
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.isOpen && status.hasLists && status.total == 3 && !status.isSealed)
        // It is that list, whoever adds it.
        #expect(try await append(f, list("aa", 3)) == .listed(segment, isNew: false, pushed: 0))
        #expect(try await f.findings("b") == [])
    }

    @Test("APPEND gives each list its place: indices and lines run on; sent again it changes nothing")
    func places() async throws {
        let f = try await QueueFixture()
        try await open(f)
        guard case .listed(let first, true, 0) = try await append(f, list("aa", 3, lines: 7), nonce: "1"),
            case .listed(let second, true, 0) = try await append(f, list("bb", 0, lines: 2), nonce: "2"),
            case .listed(let third, true, 0) = try await append(f, list("cc", 2), nonce: "3")
        else {
            Issue.record("not added")
            return
        }
        #expect([first, second, third].map(\.base) == [0, 3, 3])
        #expect([first, second, third].map(\.line) == [0, 7, 9])
        #expect(first.path == "/lists/aa of today")
        let before = try await state(f)
        #expect(before == ["running", "0", "-", "0", "5", "11", "0 0 aa", "3 7 bb", "3 9 cc"])
        for (hash, total, nonce, segment) in [("aa", 3, "1", first), ("cc", 2, "3", third), ("aa", 3, "9", first)] {
            #expect(try await append(f, list(hash, total), nonce: nonce) == .listed(segment, isNew: false, pushed: 0))
        }
        #expect(try await state(f) == before)
        #expect(try await f.field("list", of: "b") == "/lists/aa of today")
        #expect(try await f.findings("b") == [])
    }

    @Test("A list that is there is added once more only when asked and pushed to its end, and that once a call")
    func again() async throws {
        let f = try await QueueFixture()
        try await open(f)
        guard case .listed(let first, true, _) = try await append(f, list("aa", 2)) else { return }
        #expect(try await append(f, list("aa", 2), again: true) == .listed(first, isNew: false, pushed: 0))
        #expect(try await push(f, first, offset: 0, sizes: [2]) == .pushed(2))
        #expect(try await append(f, list("aa", 2)) == .listed(first, isNew: false, pushed: 2))
        guard case .listed(let second, true, 2) = try await append(f, list("aa", 2), nonce: "x", again: true) else {
            Issue.record("not added")
            return
        }
        #expect(second.base == 2 && second.number == 1)
        let repeated = try await append(f, list("aa", 2), nonce: "x", again: true)
        #expect(repeated == .listed(second, isNew: false, pushed: 2))
        #expect(try await f.field("total", of: "b") == "4")
    }

    @Test("PUSH takes URLs of the list they are of and of no other, at its offset, and sent again changes nothing")
    func push() async throws {
        let f = try await QueueFixture()
        try await open(f)
        guard case .listed(let a, _, _) = try await append(f, list("aa", 3)),
            case .listed(let b, _, _) = try await append(f, list("bb", 2))
        else { return }
        #expect(try await push(f, b, offset: 0, sizes: [2]) == .closed("unlisted"))
        #expect(try await push(f, a, offset: 0, sizes: [4]) == .closed("unlisted"))
        #expect(try await f.push(offset: 0, sizes: [1]) == .closed("open"))
        #expect(try await push(f, a, offset: 0, sizes: [2]) == .pushed(2))
        #expect(try await push(f, a, offset: 0, sizes: [2]) == .at(2))
        #expect(try await push(f, b, offset: 3, sizes: [2]) == .at(2))
        #expect(try await push(f, a, offset: 2, sizes: [1]) == .pushed(3))
        var other = b
        other.hash = "cc"
        #expect(try await push(f, other, offset: 3, sizes: [2]) == .closed("unlisted"))
        other = b
        other.number = 7
        #expect(try await push(f, other, offset: 3, sizes: [2]) == .closed("unlisted"))
        #expect(try await push(f, b, offset: 3, sizes: [1, 1]) == .pushed(5))
        #expect(try await f.field("sealed", of: "b") == "0")
        #expect(try await f.queue.batches.seal(batch: "b", total: 5) == .closed("open"))
        #expect(try await f.findings("b") == [])
    }

    @Test("CLOSE seals at once where all is pushed, or with the last URL, and completes what has ended")
    func close() async throws {
        let f = try await QueueFixture()
        #expect(try await f.queue.lists.close(batch: "b") == .closed("gone"))
        try await open(f)
        guard case .listed(let a, _, _) = try await append(f, list("aa", 3)) else { return }
        try await f.join("w")
        #expect(try await push(f, a, offset: 0, sizes: [2]) == .pushed(2))
        #expect(try await f.finish(try await f.claim("w", 1)[0].job, "w") == 2)
        for _ in 0..<2 { #expect(try await f.queue.lists.close(batch: "b") == .at(2)) }
        #expect(try await f.queue.batches.status(of: "b")?.isOpen == false)
        #expect(try await append(f, list("bb", 2)) == .closed("sealed"))
        // The same command again after a kill: its list is there, and is fed to its end.
        #expect(try await append(f, list("aa", 3)) == .listed(a, isNew: false, pushed: 2))
        #expect(try await push(f, a, offset: 2, sizes: [1]) == .pushed(3))
        #expect(try await f.field("sealed", of: "b") == "1")
        #expect(try await push(f, a, offset: 2, sizes: [1]) == .at(3))
        for _ in 0..<2 { #expect(try await f.queue.lists.close(batch: "b") == .pushed(3)) }
        #expect(try await f.findings("b") == [])
        #expect(try await f.finish(try await f.claim("w", 2)[0].job, "w") == 1)
        #expect(try await f.field("state", of: "b") == "done")
        #expect(try await f.queue.lists.close(batch: "b") == .pushed(3))
        #expect(try await append(f, list("bb", 2)) == .closed("done"))
        #expect(try await append(f, list("aa", 3)) == .listed(a, isNew: false, pushed: 3))
        #expect(try await f.findings("b") == [])
    }

    @Test("An open batch whose URLs have ended goes on until it is closed; an empty one is done with CLOSE")
    func empty() async throws {
        let f = try await QueueFixture()
        try await open(f)
        #expect(try await f.queue.lists.close(batch: "b") == .pushed(0))
        #expect(try await f.field("state", of: "b") == "done")
        let g = try await QueueFixture()
        try await open(g)
        guard case .listed(let a, _, _) = try await append(g, list("aa", 1)) else { return }
        _ = try await push(g, a, offset: 0, sizes: [1])
        try await g.join("w")
        #expect(try await g.finish(try await g.claim("w", 1)[0].job, "w") == 1)
        #expect(try await g.field("state", of: "b") == "running")
        #expect(try await g.findings("b") == [])
        #expect(try await g.queue.lists.close(batch: "b") == .pushed(1))
        #expect(try await g.field("state", of: "b") == "done")
        #expect(try await g.findings("b") == [])
    }

    @Test("A batch that is no open one, cancelled or gone takes no list and stays as it was")
    func refused() async throws {
        let f = try await QueueFixture()
        #expect(try await append(f, list("aa", 1)) == .closed("gone"))
        #expect(try await f.queue.catalog.ids() == [])
        try await f.fill(sizes: [2])
        let before = try await f.redis("HGETALL", f.keys.batch("b"))
        #expect(try await append(f, list("aa", 1)) == .closed("single"))
        #expect(try await f.queue.lists.close(batch: "b") == .closed("single"))
        #expect(try await f.redis("HGETALL", f.keys.batch("b")) == before)
        let g = try await QueueFixture()
        try await open(g)
        try await append(g, list("aa", 1))
        _ = try await g.queue.batches.cancel(batch: "b")
        for hash in ["aa", "bb"] { #expect(try await append(g, list(hash, 1)) == .closed("cancelled")) }
        #expect(try await g.queue.lists.close(batch: "b") == .closed("cancelled"))
        let status = try #require(try await g.queue.batches.status(of: "b"))
        #expect(status.counts[.cancelled] == 1 && status.total == 1 && !status.isOpen && status.endedBy == .hand)
    }

    @Test("The lists leave Redis with the batch, and are removed with it")
    func keep() async throws {
        let f = try await QueueFixture()
        try await open(f, [("keep", "600")])
        try await append(f, list("aa", 1))
        #expect(try await f.redis("TTL", f.keys.lists("b")).int == -1)
        _ = try await f.queue.batches.cancel(batch: "b")
        #expect((599...600).contains(try await f.redis("TTL", f.keys.lists("b")).int ?? 0))
        #expect(try await f.queue.batches.remove(batch: "b") == .removed)
        // The queue's clock stays.
        #expect(try await f.redis("KEYS", f.keys.root + "*").array?.compactMap(\.string) == [f.keys.clock])
    }

    @Test("A full Redis takes no list, and still closes")
    func full() async throws {
        let server = try await RedisServer()
        let connection = RedisConnection(try RedisConfiguration(url: server.url), name: "test")
        let queue = PrefetchQueue(connection: connection, waitLimit: .zero)
        _ = try await queue.batches.open(
            id: "b", nonce: "1", exactly: true, fields: [("open", "1"), ("total", "0"), ("lines", "0"), ("list", "")])
        try await connection.command(["CONFIG", "SET", "maxmemory", "1"])
        await #expect {
            try await queue.lists.append(list("aa", 1), to: "b", nonce: "1", host: "h")
        } throws: {
            ($0 as? RedisError)?.code == .outOfMemory
        }
        #expect(try await queue.lists.segments(of: "b") == [])
        #expect(try await queue.lists.close(batch: "b") == .pushed(0))
    }
}

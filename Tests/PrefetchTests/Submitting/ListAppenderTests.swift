import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("Adding lists to an open batch", .timeLimit(.minutes(5)))
struct ListAppenderTests {
    private let folder = TemporaryDirectory()

    /// A list with a comment and a blank line in front of every URL.
    private func list(_ name: String, _ count: Int) throws -> URLList {
        folder.write(Array((0..<count).map { "# \($0)\n\nhttp://\(name)/\($0)\n" }.joined().utf8), to: name)
        return try URLList(path: folder.path(name))
    }

    private func open(_ f: QueueFixture, _ list: URLList? = nil) async throws {
        var batch = NewBatch(list: list)
        batch.isOpen = true
        batch.name = "b"
        #expect(try await batch.open(in: f.queue).id == "b")
    }

    /// Claims and finishes whatever is there, until all of `total` have ended.
    private func work(_ f: QueueFixture, _ total: Int, as outcome: PrefetchOutcome = .hit) async throws -> [Int: String]
    {
        var seen: [Int: String] = [:]
        var sequence = 0
        let worker = "w\(UInt32.random(in: 0...UInt32.max))"
        try await f.join(worker)
        while seen.count < total {
            sequence += 1
            for claim in try await f.claim(worker, sequence, count: 3) {
                try await f.finish(claim.job, worker, outcome)
                for (position, entry) in claim.job.entries.enumerated() {
                    #expect(seen[claim.job.base + position] == nil)
                    seen[claim.job.base + position] = "\(entry.line) \(entry.url)"
                }
            }
            await Task.yield()
        }
        return seen
    }

    /// What the batch has to be: its lists one after the other.
    private func expected(_ f: QueueFixture) async throws -> [String] {
        try await f.queue.lists.segments(of: "b").flatMap { segment in
            let name = segment.path.split(separator: "/").last ?? ""
            return (0..<segment.total).map { "\(segment.line + 3 * $0 + 3) http://\(name)/\($0)" }
        }
    }

    private func feeder(
        _ f: QueueFixture, _ list: URLList?, window: String = "all", silence: Int = 60_000
    ) -> OpenBatchFeeder {
        OpenBatchFeeder(queue: f.queue, batch: "b", list: list, window: window, jobSize: 7, silence: silence)
    }

    @Test(
        "Many who add lists at once, through a small window: each list is there once and as a whole, in the order of their places"
    )
    func atOnce() async throws {
        let f = try await QueueFixture()
        try await open(f, try list("first", 50))
        let sizes = (0..<6).map { _ in Int.random(in: 0...400) }
        let total = 50 + sizes.reduce(0, +)
        let lists = try sizes.enumerated().map { try list("l\($0)", $1) }
        let first = try list("first", 50)
        async let seen = work(f, total)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for list in [first] + lists {
                group.addTask {
                    let appender = ListAppender(queue: f.queue, batch: "b", list: list, window: "2", jobSize: 3)
                    let added = try await appender.add()
                    try await appender.feed(added)
                    // The same command again has nothing to do.
                    let again = try await appender.add()
                    #expect(again == .init(segment: added.segment, isNew: false, wasFed: true))
                }
            }
            try await group.waitForAll()
        }
        #expect(try await f.queue.lists.close(batch: "b") == .pushed(total))
        let found = try await seen
        let expected = try await expected(f)
        #expect((0..<total).map { found[$0] ?? "none" } == expected, "sizes \(sizes)")
        #expect(try await f.field("state", of: "b") == "done")
        #expect(try await f.findings("b") == [])
    }

    @Test("What somebody left who died is fed by whoever comes next and can read it")
    func takeover() async throws {
        let f = try await QueueFixture()
        try await open(f)
        let (dead, own) = (try list("dead", 300), try list("own", 20))
        let added = try await ListAppender(queue: f.queue, batch: "b", list: dead).add()
        #expect(added.isNew && !added.wasFed)
        // It had pushed a part when it died.
        let jobs = QueueFixture.jobs("b", sizes: [1])
        _ = try await f.queue.batches.push(
            batch: "b", offset: 0, window: "all", count: 1, of: added.segment,
            jobs: [PrefetchJob(batch: "b", base: 0, entries: [.init(line: 3, url: "http://dead/0")]).encoded()])
        #expect(jobs.count == 1)
        let mine = try await ListAppender(queue: f.queue, batch: "b", list: own).add()
        #expect(mine.segment.base == 300 && mine.segment.line == 900)
        #expect(try await feeder(f, own, silence: 0).feed(to: mine.segment.end) == .fed)
        #expect(try await f.field("pushed", of: "b") == "320")
        let found = try await work(f, 320)
        #expect(try await expected(f) == (0..<320).map { found[$0] ?? "none" })
        #expect(try await f.queue.lists.close(batch: "b") == .pushed(320))
        #expect(try await f.findings("b") == [])
    }

    @Test("A list that nobody can read holds up those behind it, which is told, and its own command goes on with it")
    func unreadable() async throws {
        let f = try await QueueFixture()
        try await open(f)
        let (gone, own) = (try list("gone", 40), try list("own", 20))
        let first = try await ListAppender(queue: f.queue, batch: "b", list: gone).add()
        folder.write(Array("http://h/other\n".utf8), to: "gone")
        let mine = try await ListAppender(queue: f.queue, batch: "b", list: own).add()
        let told = Latch()
        let waiting = Task {
            try await feeder(f, own, silence: 0).feed(to: mine.segment.end) { notice in
                if case .waitingForList(let segment) = notice, segment == first.segment { told.open() }
            }
        }
        await told.wait()
        #expect(try await f.field("pushed", of: "b") == "0")
        // The same list from elsewhere is that list.
        let copy = folder.path("copy")
        folder.write(Array((0..<40).map { "# \($0)\n\nhttp://gone/\($0)\n" }.joined().utf8), to: "copy")
        let appender = ListAppender(queue: f.queue, batch: "b", list: try URLList(path: copy))
        let again = try await appender.add()
        #expect(again == first.with(isNew: false))
        try await appender.feed(again)
        #expect(try await waiting.value == .fed)
        #expect(try await f.field("pushed", of: "b") == "60")
        #expect(try await f.findings("b") == [])
    }

    @Test("seal feeds what was left, and is sealed by the last push")
    func sealing() async throws {
        let f = try await QueueFixture()
        try await open(f)
        _ = try await ListAppender(queue: f.queue, batch: "b", list: try list("a", 100)).add()
        #expect(try await f.queue.lists.close(batch: "b") == .at(0))
        #expect(try await feeder(f, nil, silence: 0).feed(to: nil) == .sealed)
        #expect(try await f.field("sealed", of: "b") == "1")
        _ = try await work(f, 100)
        #expect(try await f.field("state", of: "b") == "done")
        #expect(try await feeder(f, nil).feed(to: nil) == .sealed)
        #expect(try await f.findings("b") == [])
    }

    @Test("Where Redis lost its tail, and with it the list, the list takes a place anew")
    func lostTail() async throws {
        let f = try await QueueFixture()
        try await open(f)
        let list = try list("a", 200)
        let appender = ListAppender(queue: f.queue, batch: "b", list: list, window: "70", jobSize: 1)
        let added = try await appender.add()
        let isFull = Latch()
        let feeding = Task { try await appender.feed(added) { _ in isFull.open() } }
        await isFull.wait()
        // As it was before the list came, and another came first.
        try await f.redis("DEL", f.keys.jobs("b"), f.keys.lists("b"), f.keys.ready(.normal), f.keys.bell)
        try await f.redis("HDEL", f.keys.batch("b"), "ready")
        try await f.redis("HSET", f.keys.batch("b"), "pushed", "0", "total", "0", "lines", "0")
        let other = try self.list("other", 10)
        let first = try await ListAppender(queue: f.queue, batch: "b", list: other).add()
        try await ListAppender(queue: f.queue, batch: "b", list: other).feed(first)
        let found = try await work(f, 210)
        try await feeding.value
        #expect(try await f.queue.lists.segments(of: "b").map(\.base) == [0, 10])
        #expect(try await expected(f) == (0..<210).map { found[$0] ?? "none" })
        #expect(try await f.queue.lists.close(batch: "b") == .pushed(210))
        #expect(try await f.findings("b") == [])
    }

    @Test("A list that became shorter is not fed past its end, and says how to go on")
    func shorter() async throws {
        let f = try await QueueFixture()
        try await open(f)
        let before = try list("a", 100)
        let appender = ListAppender(queue: f.queue, batch: "b", list: before)
        let added = try await appender.add()
        _ = try list("a", 30)
        await #expect {
            try await appender.feed(added)
        } throws: { error in
            let error = error as? PrefetchError
            return error?.kind == .unreadableList && error?.hint.contains("append b FILE") == true
        }
        #expect(try await f.findings("b") == [])
        // With the list as it was the same command goes on; a longer one is not read past its end.
        folder.write(Array((0..<500).map { "# \($0)\n\nhttp://a/\($0)\n" }.joined().utf8), to: "a")
        try await appender.feed(added)
        #expect(try await f.field("pushed", of: "b") == "100")
        let found = try await work(f, 100)
        #expect(try await expected(f) == (0..<100).map { found[$0] ?? "none" })
    }

    @Test("Who may add nothing is told why", arguments: [("none", "gone"), ("one", "single"), ("ended", "cancelled")])
    func refused(batch: String, why: String) async throws {
        let f = try await QueueFixture()
        let list = try list("a", 3)
        try await f.open("one")
        try await f.open("ended", fields: [("open", "1"), ("total", "0"), ("lines", "0")])
        _ = try await f.queue.batches.cancel(batch: "ended")
        await #expect {
            try await ListAppender(queue: f.queue, batch: batch, list: list).add()
        } throws: { error in
            (error as? PrefetchError)?.kind == (why == "gone" ? .notFound : .configuration)
        }
        #expect(try await f.redis("EXISTS", f.keys.lists(batch)).int == 0)
    }

    @Test("Entries, failures and results go over all lists, and no further than the status they were asked with")
    func reading() async throws {
        let f = try await QueueFixture()
        let first = try list("a", 5)
        try await open(f, first)
        for list in [first, try list("b", 4)] {
            let appender = ListAppender(queue: f.queue, batch: "b", list: list)
            try await appender.feed(try await appender.add())
        }
        let found = try await work(f, 9, as: .badImage)
        let status = try #require(try await f.queue.batches.status(of: "b"))
        let late = ListAppender(queue: f.queue, batch: "b", list: try list("late", 3))
        try await late.feed(try await late.add())
        let entries = try await BatchEntries(of: status, queue: f.queue)
        #expect(entries.total == 9)
        for from in 0...9 {
            var lines: [String] = []
            try await entries.forEach(from: from) { entry throws(PrefetchError) in
                lines.append("\(entry.line) \(entry.url)")
                return lines.count < 7
            }
            #expect(lines == Array((from..<9).map { found[$0] ?? "none" }.prefix(7)), "from \(from)")
        }
        for keepsDetails in [true, false] {
            if !keepsDetails { try await f.redis("DEL", f.keys.skipped("b")) }
            var failures: [String] = []
            try await FailureReader(queue: f.queue, status: status).forEach { failure throws(PrefetchError) in
                failures.append("\(failure.line) \(failure.url)")
                return true
            }
            #expect(failures == (0..<9).map { found[$0] ?? "none" })
        }
        let chain = try await BatchChain.read("b", queue: f.queue)
        var results: [String] = []
        try await BatchResults(chain, queue: f.queue).forEach { line throws(PrefetchError) in
            results.append("\(line.line) \(line.url) \(line.outcome?.name ?? "open")")
            return true
        }
        let ended = (0..<9).map { "\(found[$0] ?? "none") badImage" }
        let open = ["30 http://late/0 open", "33 http://late/1 open", "36 http://late/2 open"]
        #expect(results == ended + open)
    }

    @Test("Lists that were moved are found by a folder, or one of them by its file; another file is refused")
    func moved() async throws {
        let f = try await QueueFixture()
        let (a, b) = (try list("a", 2), try list("b", 2))
        try await open(f, a)
        let appender = ListAppender(queue: f.queue, batch: "b", list: b)
        try await appender.feed(try await appender.add())
        let moved = TemporaryDirectory()
        moved.write(folder.read("a") ?? [], to: "a")
        moved.write(folder.read("b") ?? [], to: "b")
        folder.write(Array("http://h/1\n".utf8), to: "b")
        let status = try #require(try await f.queue.batches.status(of: "b"))
        func count(_ path: String?) async throws -> Int {
            var count = 0
            try await BatchEntries(of: status, queue: f.queue, listPath: path).forEach { _ throws(PrefetchError) in
                count += 1
                return true
            }
            return count
        }
        for path in [moved.path, moved.path("b")] { #expect(try await count(path) == 4) }
        for path in [nil, folder.path("b"), moved.path("a")] {
            await #expect { try await count(path) } throws: { error in
                let error = error as? PrefetchError
                return error?.kind == .unreadableList && error?.hint.contains("--list") == true
            }
        }
    }
}

extension ListAppender.Added {
    fileprivate func with(isNew: Bool) -> Self {
        var added = self
        added.isNew = isNew
        return added
    }
}

import Glibc
import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Following a batch", .timeLimit(.minutes(5)))
struct BatchFollowingTests {
    private func batch(_ count: Int, keepDetails: Int = 1000) async throws -> FollowedBatch {
        try await FollowedBatch(on: try await QueueFixture().queue, count, keepDetails: keepDetails)
    }

    @Test("Each URL has its two events when it ends, and the end its two, once")
    func fromStart() async throws {
        let b = try await batch(4)
        var log = b.follow()
        try await log.poll()
        #expect(log.lines.isEmpty)
        try await b.settle(2, .httpError)
        try await log.read(2)
        try await b.settle(0)
        try await log.read(4)
        try await b.settle(3, .hit)
        try await b.settle(1, .badImage)
        let end = ["didFinish 2, 2", "completion 4, 2"]
        let first = b.lines(1, 2, .httpError) + b.lines(2, 0)
        // The last two ended between two readings, or not: both orders are right, but the counts are these.
        let lines = try await log.readToEnd()
        let either = [b.lines(3, 3, .hit) + b.lines(4, 1, .badImage), b.lines(3, 1, .badImage) + b.lines(4, 3, .hit)]
        #expect(either.contains { lines == first + $0 + end }, "\(lines)")
        #expect(try await log.following.next() == nil)
    }

    @Test("Whoever comes late gets everything from the start, or the counts of now and then what comes")
    func late() async throws {
        let b = try await batch(5)
        try await b.settle(4, .timeout)
        try await b.settle(1)
        var present = b.follow(from: .present)
        try await present.poll()
        #expect(present.lines == ["progress 2/5"])
        var start = b.follow()
        try await start.read(4)
        #expect(start.lines == b.lines(1, 1) + b.lines(2, 4, .timeout))
        try await b.settle(0)
        try await present.read(3)
        for index in 2...3 { try await b.settle(index) }
        let rest = b.lines(3, 0) + b.lines(4, 2) + b.lines(5, 3) + ["didFinish 4, 1", "completion 5, 1"]
        #expect(try await present.readToEnd() == ["progress 2/5"] + rest)
        var after = b.follow(from: .present)
        #expect(try await after.readToEnd() == ["progress 5/5", "didFinish 4, 1", "completion 5, 1"])
        var all = b.follow()
        #expect(try await all.readToEnd().count == 12)
    }

    @Test("Of a cancelled batch the open URLs end as cancelled, then it has its end")
    func cancelled() async throws {
        let b = try await batch(4)
        var log = b.follow()
        try await b.settle(1)
        try await log.read(2)
        _ = try await b.queue.batches.cancel(batch: b.id)
        let expected =
            b.lines(1, 1) + b.lines(2, 0, .cancelled) + b.lines(3, 2, .cancelled) + b.lines(4, 3, .cancelled) + [
                "didFinish 1, 3", "completion 4, 3",
            ]
        #expect(try await log.readToEnd() == expected)
        var late = b.follow(from: .present)
        #expect(try await late.readToEnd() == ["progress 4/4", "didFinish 1, 3", "completion 4, 3"])
    }

    @Test("Of a cancelled batch that keeps to SDWebImage 3 nobody hears any more")
    func cancelledSilently() async throws {
        var options = BatchOptions()
        options.compat = .sd3
        let b = try await FollowedBatch(on: try await QueueFixture().queue, 3, options: options)
        var log = b.follow()
        try await b.settle(1)
        try await log.read(2)
        _ = try await b.queue.batches.cancel(batch: b.id)
        #expect(try await log.readToEnd() == b.lines(1, 1))
        #expect(await log.following.hasEnded)
        var late = b.follow(from: .present)
        #expect(try await late.readToEnd() == [])
    }

    @Test("An empty batch has its completion alone")
    func empty() async throws {
        for start in [OutcomeTail.Start.beginning, .present] {
            let b = try await batch(0)
            var log = b.follow(from: start)
            #expect(try await log.readToEnd() == ["completion 0, 0"])
        }
    }

    @Test("A batch that is not there is said so, and one that goes while it is followed too")
    func gone() async throws {
        let b = try await batch(2)
        var none = FollowerLog(BatchEventReader(queue: b.queue, batch: "none", from: .beginning))
        await #expect { try await none.poll() } throws: { ($0 as? PrefetchError)?.kind == .notFound }
        var log = b.follow()
        try await log.poll()
        _ = try await b.queue.redis.read([["DEL", RedisArgument(b.queue.keys.batch(b.id))]])
        await #expect { _ = try await log.readToEnd() } throws: { ($0 as? PrefetchError)?.kind == .notFound }
    }

    @Test("A follower that is cancelled ends without a word")
    func stopped() async throws {
        let b = try await batch(2)
        let following = b.follow().following
        let task = Task {
            while try await following.next() != nil {}
            return true
        }
        task.cancel()
        #expect(try await task.value)
    }

    @Test("The URLs of a retry are the skipped lines of the batch it retries")
    func retry() async throws {
        let b = try await batch(5, keepDetails: 1)
        let outcomes: [PrefetchOutcome] = [.downloaded, .httpError, .downloaded, .timeout, .badImage]
        for (index, outcome) in outcomes.enumerated() { try await b.settle(index, outcome, keepDetails: 1) }
        let parent = try #require(try await b.queue.batches.status(of: b.id))
        _ = try await b.queue.batches.open(
            id: "r", nonce: "r", exactly: true,
            fields: [
                ("total", "3"), ("retry_of", b.id), ("list", b.list.path), ("hash", b.list.hash),
                ("length", String(b.list.bytes)),
                ("details", "1000"),
            ])
        let entries = BatchEntries(skippedOf: parent, queue: b.queue)
        let feeder = ListFeeder(queue: b.queue, entries: entries, of: b.id, batch: "r", window: "all")
        #expect(try await feeder.feed() == .sealed)
        var log = FollowerLog(BatchEventReader(queue: b.queue, batch: "r", from: .beginning))
        let job = PrefetchJob(batch: "r", base: 0, entries: [1, 3, 4].map { .init(line: $0 + 1, url: b.urls[$0]) })
        _ = try await b.queue.reports.send([QueueFixture.report(job, [.downloaded, .timeout, .hit])], worker: "w")
        #expect(
            try await log.readToEnd() == [
                "progress 1/3", "didPrefetch http://h/1 1/3 downloaded", "progress 2/3",
                "didPrefetch http://h/3 2/3 timeout", "progress 3/3", "didPrefetch http://h/4 3/3 hit",
                "didFinish 2, 1", "completion 3, 1",
            ])
    }

    @Test("Without the list the skipped URLs are known from Redis; for the others it is said to be missing")
    func listGone() async throws {
        let b = try await batch(3)
        #expect(rename(b.list.path, b.folder.path("moved.txt")) == 0)
        try await b.settle(1, .httpError)
        var log = b.follow()
        try await log.read(2)
        #expect(log.lines == b.lines(1, 1, .httpError))
        try await b.settle(0)
        await #expect { _ = try await log.readToEnd() } throws: { error in
            (error as? PrefetchError)?.kind == .unreadableList
                && (error as? PrefetchError)?.message.contains("there is no copy of it") == true
        }
        // Counts need no list.
        let tail = OutcomeTail(queue: b.queue, batch: b.id, from: .present)
        #expect(try await tail.next()?.finished == 2)
        let counts = OutcomeTail(queue: b.queue, batch: b.id, from: .present, readsOutcomes: false)
        #expect(try await counts.next()?.status.counts.finished == 2)
        try await b.settle(2)
        // Another list in its place is not taken for it.
        b.folder.write(Array("http://h/other\n".utf8), to: "list.txt")
        var wrong = b.follow()
        await #expect { _ = try await wrong.readToEnd() } throws: { ($0 as? PrefetchError)?.kind == .unreadableList }
        #expect(rename(b.folder.path("moved.txt"), b.list.path) == 0)
        var found = b.follow()
        #expect(try await found.readToEnd().count == 8)
    }

    @Test("A batch whose outcomes contradict its state is said to be so, not waited for")
    func contradiction() async throws {
        let b = try await batch(2)
        try await b.settle(0)
        _ = try await b.queue.redis.read([["HSET", RedisArgument(b.queue.keys.batch(b.id)), "state", "done"]])
        var log = b.follow()
        await #expect { _ = try await log.readToEnd() } throws: { ($0 as? PrefetchError)?.kind == .software }
        _ = try await b.queue.redis.read([["SETRANGE", RedisArgument(b.queue.keys.outcomes(b.id)), "1", "c"]])
        var odd = b.follow()
        await #expect { _ = try await odd.readToEnd() } throws: { error in
            (error as? PrefetchError)?.message.contains("outcome 99") == true
        }
    }

    @Test("Outcomes are read only where the batch has changed, and of them only the pieces that are open")
    func economy() async throws {
        let server = try await RedisServer()
        let b = try await FollowedBatch(on: try FollowedBatch.queue(server.url), 3 * OutcomeCopy.piece)
        let (batch, outcomes) = (RedisArgument(b.queue.keys.batch(b.id)), RedisArgument(b.queue.keys.outcomes(b.id)))
        var codes = [UInt8](repeating: 1, count: 3 * OutcomeCopy.piece)
        (codes[0], codes[5]) = (0, 0)
        let ended = RedisArgument(codes.count - 2)
        _ = try await b.queue.redis.read([
            ["SET", outcomes, RedisArgument(codes)], ["HSET", batch, "finished", ended, "o1", ended],
        ])
        func reads() async throws -> Int {
            let info = try await b.queue.redis.read([["INFO", "commandstats"]])[0].get().string ?? ""
            let line = info.split(whereSeparator: \.isNewline).first { $0.hasPrefix("cmdstat_getrange:calls=") }
            return line.flatMap { Int($0.dropFirst(23).prefix { $0 != "," }) } ?? 0
        }
        let tail = OutcomeTail(queue: b.queue, batch: b.id, from: .beginning)
        let news = try #require(try await tail.next())
        #expect(news.settled.count == codes.count - 2 && news.finished == codes.count - 2)
        let before = try await reads()
        #expect(before == 3)
        for _ in 0..<5 { #expect(try await tail.next()?.settled == []) }
        #expect(try await reads() == before)
        try await b.settle(5)
        var settled: [SettledURL] = []
        while settled.isEmpty { settled = try await tail.next()?.settled ?? [] }
        #expect(settled == [SettledURL(index: 5, outcome: .downloaded)])
        // One GETRANGE of the report's script, one of the follower.
        #expect(try await reads() == before + 2)
    }
}

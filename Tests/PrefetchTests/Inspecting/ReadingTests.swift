import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("Reading what became of batches", .timeLimit(.minutes(5)))
struct ReadingTests {
    private let folder = TemporaryDirectory()

    /// A batch of 5 lines, of which 2, 3 and 5 were skipped; keeps so many details.
    private func batch(_ f: QueueFixture, keepDetails: Int, finish: Int = 5) async throws -> BatchStatus {
        folder.write(
            Array("# comment\nhttp://h/b/0\nhttp://h/b/1\nnone\n\nhttp://h/b/3\nhttp://h/b/4\n".utf8), to: "l.txt")
        let list = try URLList(path: folder.path("l.txt"))
        try await f.open(
            fields: [
                ("total", "5"), ("list", list.path), ("hash", list.hash), ("length", String(list.bytes)),
                ("details", String(keepDetails)),
            ])
        #expect(try await ListFeeder(queue: f.queue, list: list, batch: "b", jobSize: 256).feed() == .sealed)
        try await f.join("w")
        let job = try await f.claim("w", 1)[0].job
        let outcomes: [PrefetchOutcome] = [.downloaded, .httpError, .invalidURL, .hit, .badImage]
        let report = QueueFixture.report(job, Array(outcomes.prefix(finish)), keepDetails: keepDetails)
        _ = try await f.queue.reports.send([report], worker: "w")
        return try #require(try await f.queue.batches.status(of: "b"))
    }

    private func failures(_ reader: FailureReader, most: Int = .max) async throws -> [String] {
        var found: [String] = []
        try await reader.forEach { detail async throws(PrefetchError) in
            found.append("\(detail.line) \(detail.outcome.name) \(detail.url) \(detail.detail)")
            return found.count < most
        }
        return found
    }

    @Test(
        "Skipped URLs come in the order of their lines, from Redis and past its limit from the list",
        arguments: [1000, 1, 0])
    func failures(keepDetails: Int) async throws {
        let f = try await QueueFixture()
        let status = try await batch(f, keepDetails: keepDetails)
        #expect(status.state == .done && status.didFinish == (2, 3))
        let kept = (0..<3).map { $0 < keepDetails ? "no" : "no detail kept" }
        let expected = [
            "3 httpError http://h/b/1 \(kept[0])", "4 invalidURL none \(kept[1])", "7 badImage http://h/b/4 \(kept[2])",
        ]
        #expect(try await failures(FailureReader(queue: f.queue, status: status)) == expected)
        #expect(try await failures(FailureReader(queue: f.queue, status: status), most: 2) == Array(expected.prefix(2)))
        #expect(try await f.findings("b") == [])
    }

    @Test("Outcomes of a later version are unknown, skipped and finished, for every reader")
    func later() async throws {
        let f = try await QueueFixture()
        _ = try await batch(f, keepDetails: 1000)
        // As a worker that knows the codes 30 and 31 would have reported lines 1 and 2.
        let (root, later) = (f.queue.keys.batch("b"), ["30": "\u{1E}", "31": "\u{1F}"])
        for (index, (was, code)) in [("5", "30"), ("13", "31")].enumerated() {
            _ = try await f.redis("SETRANGE", f.queue.keys.outcomes("b"), String(index + 1), later[code] ?? "")
            for (key, field) in [(root, "o"), (f.queue.keys.workerCounts("b"), "w:")] {
                _ = try await f.redis("HDEL", key, field + was)
                _ = try await f.redis("HINCRBY", key, field + code, "1")
            }
        }
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.counts[.unknown] == 2 && status.counts[.badImage] == 1 && status.didFinish == (2, 3))
        #expect(try await f.queue.results.workerCounts(of: "b")["w"]?[.unknown] == 2)
        #expect(try await f.findings("b") == [])
        var lines: [String] = []
        let results = try await BatchResults(BatchChain.read("b", queue: f.queue), queue: f.queue)
        try await results.forEach { line async throws(PrefetchError) in
            lines.append(line.outcome?.name ?? "open")
            return true
        }
        #expect(lines == ["downloaded", "unknown", "unknown", "hit", "badImage"])
        #expect(try await failures(FailureReader(queue: f.queue, status: status)).count == 3)
        var copy = OutcomeCopy()
        _ = copy.openPieces(below: 2)
        let learned = try copy.learn([30, 31], of: 0..<2, openAs: nil)
        #expect(learned.map(\.outcome) == [.unknown, .unknown])
        #expect((copy.finished, copy.skipped) == (2, 2))
        #expect(FailureDetail(encoded: "3\tfromLater\t0\t1\thttp://h/\tno")?.outcome == .unknown)
    }

    @Test("Open URLs of a cancelled batch are among them")
    func cancelled() async throws {
        let f = try await QueueFixture()
        _ = try await batch(f, keepDetails: 1000, finish: 2)
        _ = try await f.queue.batches.cancel(batch: "b")
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.counts[.cancelled] == 3 && status.didFinish == (1, 4))
        #expect(
            try await failures(FailureReader(queue: f.queue, status: status)) == [
                "3 httpError http://h/b/1 no", "4 cancelled none no detail kept",
                "6 cancelled http://h/b/3 no detail kept",
                "7 cancelled http://h/b/4 no detail kept",
            ])
    }

    @Test("Where the list is needed, it must begin with the batch's lines")
    func otherList() async throws {
        let f = try await QueueFixture()
        let status = try await batch(f, keepDetails: 0)
        folder.write(try #require(folder.read("l.txt")), to: "moved.txt")
        folder.write(Array("http://h/other\n".utf8), to: "l.txt")
        await #expect { try await failures(FailureReader(queue: f.queue, status: status)) } throws: { error in
            (error as? PrefetchError)?.kind == .unreadableList
                && (error as? PrefetchError)?.message.contains("there is no copy") == true
        }
        // One that has grown begins with the lines of the batch.
        let lines = try #require(folder.read("moved.txt"))
        folder.write(lines + Array("http://h/more\n".utf8), to: "l.txt")
        #expect(try await failures(FailureReader(queue: f.queue, status: status)).count == 3)
    }

    @Test("A batch is meant by its id, a unique beginning, or as the newest")
    func resolve() async throws {
        let f = try await QueueFixture()
        func fails(_ name: String?, _ says: String) async {
            await #expect { try await f.queue.catalog.resolve(name) } throws: { error in
                let error = error as? PrefetchError
                return error?.kind == .notFound && "\(error?.message ?? "") \(error?.hint ?? "")".contains(says)
            }
        }
        await fails(nil, "there is no batch yet")
        await fails("x", "there is none at all")
        for (time, id) in ["urls-1", "urls-1.2", "cats-7"].enumerated() {
            try await f.open(id)
            try await f.redis("ZADD", f.keys.batches, String(time), id)
        }
        #expect(try await f.queue.catalog.resolve(nil) == "cats-7")
        #expect(try await f.queue.catalog.resolve("") == "cats-7")
        #expect(try await f.queue.catalog.resolve("c") == "cats-7")
        #expect(try await f.queue.catalog.resolve("urls-1") == "urls-1")
        #expect(try await f.queue.catalog.resolve("urls-1.") == "urls-1.2")
        await fails("urls", "urls-1, urls-1.2")
        await fails("dogs", "the newest are cats-7, urls-1.2, urls-1")
        try await f.redis("DEL", f.keys.batch("cats-7"))
        #expect(try await f.queue.catalog.resolve(nil) == "urls-1.2")
        // Reading removes nothing.
        #expect(try await f.redis("ZCARD", f.keys.batches).int == 3)
        await fails(
            "cats",
            "the batch 'cats-7' of 1970-01-01T00:00:00Z has lapsed: its results were kept for a time after its end (--keep"
        )
        try await f.redis("DEL", f.keys.batch("urls-1"), f.keys.batch("urls-1.2"))
        await fails(nil, "every batch of queue '\(f.queue.catalog.queueName)' has lapsed")
        await fails(nil, "run the same list again")
        #expect(try await f.queue.catalog.absence().contains("have lapsed (--keep"))
    }

    @Test("A queue of which Redis knows nothing is told with those that it has")
    func queues() async throws {
        // Of its own: others have their queues in the shared one.
        let server = try await RedisServer()
        let f = try await QueueFixture(on: server)
        let other = PrefetchQueue(connection: f.queue.connection, name: "deafult").catalog
        #expect(try await other.absence() == "no batches")
        #expect(try await other.unknownQueue() == nil)
        try await f.open("b")
        let name = f.queue.catalog.queueName
        #expect(try await other.absence() == "no batches in queue 'deafult'; there are '\(name)'")
        let said = try await other.unknownQueue()
        #expect(said == "queue 'deafult' has no batch; this Redis has the queues '\(name)' (--queue)")
        #expect(try await f.queue.catalog.unknownQueue() == nil)
    }

    @Test("Running batches that may have a list are those of its path, of its sources and with its beginning")
    func ofList() async throws {
        let f = try await QueueFixture()
        let fields = [
            "a": [("list", "/l"), ("head", "x")], "b": [("list", "/l")],
            "c": [("list", "/s"), ("sources", "/t\u{0}/u")],
            "d": [("list", "/m"), ("head", "same")], "e": [("list", "/other")],
        ]
        for (time, id) in fields.keys.sorted().enumerated() {
            try await f.open(id, fields: fields[id] ?? [])
            try await f.redis("HSET", f.keys.batch(id), "created", String(1_000 + time))
        }
        _ = try await f.queue.batches.cancel(batch: "b")
        func found(_ path: String, _ sources: [String], _ head: String) async throws -> [String] {
            try await f.queue.catalog.running(ofList: path, sources: sources, head: head).map(\.id)
        }
        #expect(try await found("/l", [], "same") == ["d", "a"])
        #expect(try await found("/none", ["/t", "/u"], "") == ["c"])
        #expect(try await found("/none", ["/u", "/t"], "none") == [])
        #expect(try await f.queue.catalog.running() == ["a", "c", "d", "e"])
    }

    @Test("What cannot be read of an options text has its default")
    func options() {
        var options = BatchOptions()
        options.validate = .header
        options.blacklistTTL = BlacklistTTL(0)
        options.retryFailed = true
        #expect(BatchOptions(encoded: options.encoded) == options)
        #expect(BatchOptions(encoded: #"{"durability":["none"],"later":1,"validate":"header"}"#).durability == .none)
        #expect(BatchOptions(encoded: "garbage") == BatchOptions())
        #expect(options.differences(from: options).isEmpty)
        #expect(options.differences(from: BatchOptions()).count == 3)
        // Whatever stands there, a time is one.
        for odd in ["404=-1d", "410=1e300d", "badImage=x", "other=5d", "60"] {
            #expect(BatchOptions(encoded: #"{"blacklist_ttl":["\#(odd)"]}"#).blacklistTTL == BlacklistTTL())
        }
        #expect(BatchOptions(encoded: #"{"blacklist_ttl":["60s"]}"#).blacklistTTL == BlacklistTTL(60))
        options.blacklist = .sd4
        options.blacklistTTL = BlacklistTTL()
        #expect(options.listingTTL == BlacklistTTL(0) && BatchOptions().listingTTL == BlacklistTTL())
    }
}

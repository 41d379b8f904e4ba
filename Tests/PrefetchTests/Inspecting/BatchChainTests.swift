import Redis
import Glibc
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Batches and their retries", .timeLimit(.minutes(5)))
struct BatchChainTests {
    private let folder = TemporaryDirectory()

    /// Ends a batch as if workers had reported these codes; the first ones of its list, the rest is open.
    private func end(_ f: QueueFixture, _ id: String, _ codes: [UInt8], state: String = "done") async throws {
        var counts: [UInt8: Int] = [:]
        for code in codes where code > 0 { counts[code, default: 0] += 1 }
        let skipped = counts.filter { $0.key > 3 }.values.reduce(0, +)
        var words: [RedisArgument] = [
            "HSET", RedisArgument(f.keys.batch(id)), "state", RedisArgument(state), "finished",
            RedisArgument(counts.values.reduce(0, +)), "skipped", RedisArgument(skipped),
        ]
        for (code, count) in counts { words += ["o\(code)", RedisArgument(count)] }
        try await f.queue.connection.command(words)
        try await f.queue.connection.command(["SET", RedisArgument(f.keys.outcomes(id)), RedisArgument(codes)])
    }

    private func root(_ f: QueueFixture, lines: Int, keep: String = "0") async throws -> URLList {
        folder.write(Array("# list\n".utf8) + (0..<lines).flatMap { Array("http://h/\($0)\n".utf8) }, to: "l.txt")
        let list = try URLList(path: folder.path("l.txt"))
        try await f.open(
            "urls",
            fields: [
                ("total", String(lines)), ("list", list.path), ("hash", list.hash), ("length", String(list.bytes)),
                ("keep", keep),
            ])
        return list
    }

    private func retry(_ f: QueueFixture, _ id: String, nonce: String = "n") async throws -> String? {
        let status = try #require(try await f.queue.batches.status(of: id))
        return try await f.queue.batches.retry(of: status, root: "urls", host: "here", nonce: nonce)
    }

    private func merged(_ f: QueueFixture, _ id: String) async throws -> [BatchResults.Line] {
        var lines: [BatchResults.Line] = []
        let chain = try await BatchChain.read(id, queue: f.queue)
        try await BatchResults(chain, queue: f.queue).forEach { line async throws(PrefetchError) in
            lines.append(line)
            return true
        }
        return lines
    }

    @Test("A batch has one retry at most, only when it is over, and a lost reply makes no second one")
    func linear() async throws {
        let f = try await QueueFixture()
        _ = try await root(f, lines: 3, keep: "60")
        #expect(try await retry(f, "urls") == nil)
        try await end(f, "urls", [1, 5, 6])
        #expect(try await retry(f, "urls", nonce: "a") == "urls.2")
        #expect(try await retry(f, "urls", nonce: "a") == "urls.2")
        #expect(try await retry(f, "urls", nonce: "b") == nil)
        let first = try #require(try await f.queue.batches.status(of: "urls"))
        let second = try #require(try await f.queue.batches.status(of: "urls.2"))
        #expect(first.retriedBy == "urls.2" && second.retryOf == "urls")
        #expect(second.total == 2 && second.options.retryFailed && !first.options.retryFailed)
        #expect(second.listHash == first.listHash && second.listPath == first.listPath)
        #expect(second.keepDetails == first.keepDetails)
        #expect(try await f.field("keep", of: "urls.2") == "60")
        // Of the same list another batch has taken the next name.
        #expect(
            try await f.queue.batches.open(id: "urls", nonce: "c", exactly: false, fields: [("total", "3")]) == "urls.3"
        )
        try await end(f, "urls.2", [5, 1])
        #expect(try await retry(f, "urls.2") == "urls.4")
        for id in ["urls", "urls.2", "urls.4"] {
            let chain = try await BatchChain.read(id, queue: f.queue)
            #expect(chain.batches.map(\.id) == ["urls", "urls.2", "urls.4"])
        }
        #expect(try await BatchChain.read("urls.3", queue: f.queue).batches.map(\.id) == ["urls.3"])
        // Retries are no batches of the list: `run` does not go on with them.
        let found = try await f.queue.catalog.running(ofList: first.listPath, sources: [], head: "")
        #expect(found.allSatisfy { $0.retryOf == nil })
    }

    @Test("A link to a batch that is gone, or whose name another one has, counts as none")
    func deadLinks() async throws {
        let f = try await QueueFixture()
        _ = try await root(f, lines: 2)
        try await end(f, "urls", [1, 5])
        #expect(try await retry(f, "urls", nonce: "a") == "urls.2")
        try await f.redis("DEL", f.keys.batch("urls.2"))
        #expect(try await f.queue.batches.status(of: "urls")?.retriedBy == nil)
        #expect(try await BatchChain.read("urls", queue: f.queue).batches.count == 1)
        #expect(try await retry(f, "urls", nonce: "b") == "urls.2")
        #expect(try await f.queue.batches.status(of: "urls")?.retriedBy == "urls.2")
        // The name is a new batch's now.
        try await f.redis("DEL", f.keys.batch("urls.2"))
        try await f.open("urls.2", fields: [("total", "2")])
        #expect(try await BatchChain.read("urls", queue: f.queue).batches.map(\.id) == ["urls"])
        #expect(try await retry(f, "urls", nonce: "c") == "urls.3")
        // And the other way round: the retried batch is gone, its name is another's.
        try await end(f, "urls.3", [5])
        let orphan = try #require(try await f.queue.batches.status(of: "urls.3"))
        try await f.redis("DEL", f.keys.batch("urls"))
        _ = try await root(f, lines: 1)
        #expect(try await BatchChain.read("urls.3", queue: f.queue).batches.map(\.id) == ["urls.3"])
        await #expect { try await BatchEntries(of: orphan, queue: f.queue) } throws: { error in
            (error as? PrefetchError)?.kind == .notFound
        }
    }

    @Test("A retried batch stays for as long as its newest retry")
    func keep() async throws {
        let f = try await QueueFixture()
        func seconds(_ id: String) async throws -> [Int] {
            var found: [Int] = []
            for key in [f.keys.batch(id), f.keys.outcomes(id)] {
                found.append(try await f.redis("TTL", key).int ?? 0)
            }
            return found
        }
        try await f.fill("urls", sizes: [2], fields: [("keep", "1000")])
        try await f.join("w")
        let job = try await f.claim("w", 1)[0].job
        try await f.finish(job, "w", .timeout)
        #expect(try await seconds("urls").allSatisfy { (900...1000).contains($0) })
        #expect(try await retry(f, "urls") == "urls.2")
        #expect(try await seconds("urls") == [-1, -1])
        try await f.push("urls.2", sizes: [2])
        _ = try await f.queue.batches.seal(batch: "urls.2", total: 2)
        let again = try await f.claim("w", 2)[0].job
        try await f.finish(again, "w")
        #expect(try await f.field("state", of: "urls.2") == "done")
        for id in ["urls", "urls.2"] {
            #expect(try await seconds(id).allSatisfy { (900...1000).contains($0) }, "\(id)")
        }
        try await f.redis("EXPIRE", f.keys.batch("urls"), "5")
        #expect(try await f.queue.batches.remove(batch: "urls.2") == .removed)
        #expect(try await seconds("urls").allSatisfy { (900...1000).contains($0) })
        #expect(try await f.findings("urls") == [])
    }

    @Test("Each line has its newest result, over three retries and blocks of outcomes", arguments: [1, 2, 3])
    func model(seed: UInt64) async throws {
        let f = try await QueueFixture()
        var random = SystemRandomNumberGenerator()
        let count = seed == 1 ? 40_000 : Int.random(in: 1...200, using: &random)
        let list = try await root(f, lines: count)
        var expected = [UInt8](repeating: 0, count: count)
        var open = Array(0..<count)
        var id = "urls"
        for round in 0..<4 {
            let isLast = round == 3
            let codes = open.map { _ in UInt8.random(in: (isLast ? 0 : 1)...19, using: &random) }
            // A cancelled one has no byte of what nobody got to.
            let isCut = round == 1 && !codes.isEmpty
            let kept = isCut ? Array(codes.dropLast(codes.count / 3)) : codes
            try await end(f, id, kept, state: isLast ? "running" : isCut ? "cancelled" : "done")
            for (place, line) in open.enumerated() {
                expected[line] = place < kept.count ? kept[place] : PrefetchOutcome.cancelled.rawValue
            }
            open = open.filter { expected[$0] > 3 }
            guard !isLast else { break }
            guard let next = try await retry(f, id, nonce: "\(round)") else {
                Issue.record("no retry of \(id)")
                return
            }
            id = next
        }
        let lines = try await merged(f, "urls")
        #expect(lines.map(\.line) == Array(2..<(count + 2)))
        #expect(lines.map(\.url) == (0..<count).map { "http://h/\($0)" })
        #expect(lines.map { $0.outcome?.rawValue ?? 0 } == expected)
        let chain = try await BatchChain.read(id, queue: f.queue)
        #expect(chain.root.id == "urls" && chain.newest.id == id && chain.root.total == list.total)
        #expect(chain.open == expected.count { $0 == 0 })
        for outcome in PrefetchOutcome.allCases {
            #expect(chain.counts[outcome] == expected.count { $0 == outcome.rawValue }, "\(outcome)")
        }
        // What is still skipped is what the newest one says.
        var failures: [Int] = []
        let reader = FailureReader(queue: f.queue, status: chain.newest)
        try await reader.forEach { failure async throws(PrefetchError) in
            failures.append(failure.line)
            return true
        }
        #expect(failures == open.map { $0 + 2 })
    }

    @Test("A list that has changed is said to have, and is used again when it is as it was")
    func listGone() async throws {
        let f = try await QueueFixture()
        let list = try await root(f, lines: 2)
        folder.write(try #require(folder.read("l.txt")), to: "moved.txt")
        try await end(f, "urls", [1, 5])
        folder.write([], to: "l.txt")
        let chain = try await BatchChain.read("urls", queue: f.queue)
        await #expect { try await BatchResults(chain, queue: f.queue) } throws: { error in
            let error = error as? PrefetchError
            return error?.kind == .unreadableList && error?.message.contains("there is no copy of it") == true
        }
        rename(folder.path("moved.txt"), folder.path("l.txt"))
        let found = try await BatchResults(chain, queue: f.queue)
        var count = 0
        try await found.forEach { _ async throws(PrefetchError) in
            count += 1
            return count < 2
        }
        #expect(count == list.total)
    }
}

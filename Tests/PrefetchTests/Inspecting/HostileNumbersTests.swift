import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

/// Whoever reaches Redis can write into it: no field, whatever it says, ends a program that reads it.
@Suite("Hostile numbers in Redis", .timeLimit(.minutes(6)))
struct HostileNumbersTests {
    private static let values: [String] = [
        String(Int.max), String(Int.min), "-1", "1e308", "nan", "", "\u{1B}[2J\u{7}\0\n", "0x7fffffffffffffff",
    ]

    /// A queue in which something stands under nearly every key: a running batch with jobs, claims, outcomes and details, one that is open for
    /// lists, one that was retried, a worker, hosts in trouble, failed URLs.
    private func populated() async throws -> QueueFixture {
        let f = try await QueueFixture()
        try await f.fill("b", sizes: [4, 4])
        try await f.redis("HSET", f.keys.batch("b"), "slot", "s", "keep", "60")
        try await f.redis("HSET", f.keys.slots, "s", "b")
        try await f.open("open")
        try await f.redis("HSET", f.keys.batch("open"), "open", "1", "total", "4", "list", "/list")
        try await f.fill("old", sizes: [2])
        try await f.fill("new", sizes: [1])
        try await f.redis("HSET", f.keys.batch("old"), "retried_by", "new")
        try await f.redis("HSET", f.keys.batch("new"), "retry_of", "old")
        try await f.join("w")
        let claims = try await f.claim("w", 1, count: 2)
        for claim in claims {
            let outcomes: [PrefetchOutcome?] = [.downloaded, .httpError, .poison]
            let first = Array(outcomes.prefix(claim.job.entries.count))
            let report = QueueFixture.report(claim.job, first, isFinal: false) {
                $0.list = $0.failure?.url
            }
            _ = try await f.queue.reports.send([report], worker: "w")
        }
        let job = try #require(claims.first?.job)
        try await f.redis("HSET", f.keys.tries("b"), job.name, "2", job.name + "!", "1")
        try await f.redis(
            "HSET", f.keys.worker("w"), "host", "h", "pid", "7", "in_flight", "3", "lease", "15000", "beat", "1",
            "finished", "2", "skipped", "1", "bytes", "100", "since", "1", "rss", "1", "cpu", "1", "stalled", "1",
            "checking", "1", "wanted", "4", "held", "disk", "held_ms", "9", "oldest", "b 3 transfer 10 10 10 1 h why")
        try await f.redis("HSET", f.keys.hosts("b"), "h", "4 1 100")
        try await f.redis("HSET", f.keys.hosts, "h", "silent 9000000000000 1 3 3001 gone", "#v", "1")
        try await f.redis("HSET", f.keys.batch("b"), "h404", "2", "t3", "1", "s2", "1", "d6", "5", "a0", "1")
        try await f.redis("ZADD", f.keys.deadlines, "9000000000000", "b")
        try await f.redis("SET", f.keys.concurrency, "8")
        return f
    }

    private func keys(of f: QueueFixture) async throws -> [String] {
        var (cursor, found) = ("0", Set<String>())
        repeat {
            let reply = try await f.redis("SCAN", cursor, "MATCH", "\(f.keys.root):*", "COUNT", "1000").array ?? []
            cursor = reply.first?.string ?? "0"
            found.formUnion((reply.last?.array ?? []).compactMap(\.string))
        } while cursor != "0"
        return found.sorted()
    }

    /// Everything that reads. What it throws is its answer; that it comes back is the test.
    private func readAll(_ f: QueueFixture) async {
        let queue = f.queue
        for id in ["b", "open", "old"] {
            if let snapshot = try? await queue.views.snapshot(of: id) {
                _ = snapshot.status.elapsed
                _ = snapshot.status.didFinish
                _ = try? await queue.openURLs.oldest(of: snapshot.status)
                _ = try? await FailureReader(queue: queue, status: snapshot.status).forEach { _ in true }
            }
            _ = try? await BatchCheck(queue: queue, batch: id).run()
            _ = try? await BatchChain.read(id, queue: queue)
            _ = try? await queue.results.workerCounts(of: id)
            _ = try? await queue.results.someFailures(of: id, most: 10)
        }
        _ = try? await queue.workerRecords.all()
        _ = try? await queue.views.snapshot()
        _ = try? await queue.hosts.troubled()
        _ = try? await queue.failedURLs.find("http://h/b/1")
        _ = try? await URLFacts.read("http://h/b/1", queue: queue, cache: nil, batches: 9)
        _ = try? await queue.failedURLs.forEach { _ in true }
    }

    @Test(
        "Each field of each key says each of these, and each key is of each type: whatever reads it comes back",
        .thorough)
    func everyField() async throws {
        let f = try await populated()
        let names = try await keys(of: f)
        #expect(names.count > 25)
        var dumps: [String: RedisArgument] = [:]
        for name in names { dumps[name] = RedisArgument(try await f.redis("DUMP", name).bytes ?? []) }
        var changes = 0
        func restore() async throws {
            let now = try await keys(of: f)
            var commands: [[RedisArgument]] = [["DEL"] + now.map { RedisArgument($0) }]
            for (name, dump) in dumps { commands.append(["RESTORE", RedisArgument(name), "0", dump]) }
            _ = try await f.queue.connection.pipeline(commands)
        }
        func change(_ command: [RedisArgument]) async throws {
            _ = try? await f.queue.connection.command(command)
            await readAll(f)
            try await restore()
            changes += 1
        }
        for name in names {
            let key = RedisArgument(name)
            switch try await f.redis("TYPE", name).string {
            case "hash":
                for field in try await f.redis("HKEYS", name).array ?? [] {
                    for value in Self.values {
                        try await change(["HSET", key, RedisArgument(field.bytes ?? []), RedisArgument(value)])
                    }
                }
            case "string": for value in Self.values { try await change(["SET", key, RedisArgument(value)]) }
            case "list": for value in Self.values { try await change(["LSET", key, "0", RedisArgument(value)]) }
            case "set": for value in Self.values { try await change(["SADD", key, RedisArgument(value)]) }
            default:
                let member = try await f.redis("ZRANGE", name, "0", "0").array?.first?.bytes ?? []
                for score in ["inf", "-inf", "1e308", "-1", "9223372036854775807", "0.5"] {
                    try await change(["ZADD", key, RedisArgument(score), RedisArgument(member)])
                }
                for value in Self.values { try await change(["ZADD", key, "1", RedisArgument(value)]) }
            }
            for type in ["SET x", "RPUSH x", "HSET x y", "SADD x", "ZADD 1 x"] {
                let words = type.split(separator: " ").map { RedisArgument($0) }
                try await f.redis("DEL", name)
                try await change([words[0], key] + words.dropFirst())
            }
        }
        #expect(changes > 500)
        // And it is as it was: nothing of this broke what reads.
        #expect(try await f.queue.batches.status(of: "b")?.total == 8)
    }

    @Test(
        "All fields of a batch at once, and a megabyte in one",
        arguments: Self.values + [String(repeating: "9", count: 1 << 20)])
    func everyFieldAtOnce(value: String) async throws {
        let f = try await populated()
        for name in try await keys(of: f) {
            guard try await f.redis("TYPE", name).string == "hash" else { continue }
            for field in try await f.redis("HKEYS", name).array ?? [] where field.string != "state" {
                _ = try await f.queue.connection.command(
                    ["HSET", RedisArgument(name), RedisArgument(field.bytes ?? []), RedisArgument(value)])
            }
        }
        await readAll(f)
        let status = try await f.queue.batches.status(of: "b")
        #expect(status.map { (0...BatchStatus.maxURLs).contains($0.total) } ?? true)
    }

    @Test("A number of Redis is the nearest that can be")
    func door() {
        func int(_ text: String) -> Int? { RedisValue.bytes(Array(text.utf8)).int }
        #expect(int("7") == 7 && int("-7") == -7 && int("9223372036854775807") == 1 << 48)
        #expect(int("-9223372036854775808") == -(1 << 48) && RedisValue.integer(.max).int == 1 << 48)
        #expect(RedisValue.integer(.min).count == 0 && RedisValue.integer(.max).exactInt == .max)
        for text in ["", "nan", "1e308", "9223372036854775808", " 1", "1 ", "\0"] { #expect(int(text) == nil) }
        #expect(int(String(repeating: "1", count: 1 << 20)) == nil)
        #expect(RedisValue.array([.integer(.max), .integer(.max)]).milliseconds == 1 << 48)
        #expect(RedisValue.array([.bytes(Array("12".utf8)), .bytes(Array("34567".utf8))]).milliseconds == 12_034)
        #expect(
            Int(plausible: "12") == 12 && Int(plausible: "x") == nil
                && Int(plausible: "-99999999999999999") == -(1 << 48))
    }

    @Test("One batch whose numbers nobody can have counted keeps no other from its end")
    func deadline() async throws {
        for value in ["1e308", "nan", "x", "9223372036854775807"] {
            let f = try await QueueFixture()
            for id in ["bad", "good"] {
                try await f.fill(id, sizes: [2])
                try await f.redis("ZADD", f.keys.deadlines, "1", id)
            }
            try await f.redis("HSET", f.keys.batch("bad"), "keep", value, "total", value, "finished", value)
            try await f.queue.batches.endDue()
            #expect(try await f.queue.batches.status(of: "good")?.state == .cancelled, "\(value)")
        }
    }
}

import Redis
import Testing
import WebImage

@testable import Prefetch

@Suite("The check of a batch's invariants", .timeLimit(.minutes(5)))
struct BatchCheckTests {
    /// Something planted in a running batch `b` of 3 jobs with 2 URLs each: `w` has the first two and ended one URL well, one
    /// badly; the third waits.
    struct Plant: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var commands: [[String]]
        var invariant: String
        var says: String

        init(_ name: String, _ commands: [[String]], _ invariant: String, _ says: String) {
            (testDescription, self.commands, self.invariant, self.says) = (name, commands, invariant, says)
        }
    }

    /// `$` stands for the root of the keys.
    static let plants = [
        Plant("finished too high", [["HINCRBY", "$:b:b", "finished", "1"]], "I1", "finished is 3, but 2"),
        Plant("skipped too low", [["HINCRBY", "$:b:b", "skipped", "-1"]], "I1", "skipped is 0, but 1"),
        Plant("a count moved", [["HINCRBY", "$:b:b", "o1", "1"]], "I1", "downloaded is 2, but 1"),
        Plant("an outcome that does not exist", [["SETRANGE", "$:b:b:o", "4", "\u{20}"]], "I1", "the outcome 32"),
        Plant("an outcome without a count", [["SETRANGE", "$:b:b:o", "4", "\u{1}"]], "I1", "finished is 2, but 3"),
        Plant("an outcome lost", [["SETRANGE", "$:b:b:o", "0", "\u{0}"]], "I1", "finished is 2, but 1"),
        Plant(
            "an outcome never pushed", [["SETRANGE", "$:b:b:o", "6", "\u{1}"]], "I1",
            "1 URLs have an outcome and were never"),
        Plant("too many details", [["HSET", "$:b:b:skipped", "0", "x", "4", "x"]], "I1", "3 details are kept of 1"),
        Plant(
            "a lost record", [["DEL", "$:b:b:records"]], "I7",
            "1 skipped URLs have no record, the first has the index 1"),
        Plant(
            "a record of no failure",
            [["HSET", "$:b:b:records", "0", "\u{0}\u{1}\u{1}\u{1}\u{1}\u{0}\u{0}\u{0}\u{1}"]], "I7",
            "1 records are of URLs that were not skipped"),
        Plant("a cut record", [["HSET", "$:b:b:records", "0", "x"]], "I7", "1 chunks of records are damaged"),
        Plant("a lost job", [["DEL", "$:jobs:b"]], "I2", "2 open URLs are in no job, the first has the index 4"),
        Plant(
            "a lost claim", [["HDEL", "$:own:w", "b:2:2@b"]], "I2",
            "2 open URLs are in no job, the first has the index 2"
        ),
        Plant(
            "a doubled job",
            [
                ["LMOVE", "$:jobs:b", "$:copy", "LEFT", "LEFT"], ["COPY", "$:copy", "$:jobs:b"],
                ["LMOVE", "$:copy", "$:jobs:b", "LEFT", "LEFT"],
            ], "I2", "2 open URLs are in several jobs"),
        Plant("no job in the list", [["LPUSH", "$:jobs:b", "hello"]], "I2", "an element of the job list is not a job"),
        Plant("not ready", [["LREM", "$:ready:normal", "0", "b"]], "I2", "1 jobs wait, and the batch is 0 times"),
        Plant("ready twice", [["RPUSH", "$:ready:low", "b"]], "I2", "1 jobs wait, and the batch is 2 times"),
        Plant("no bell", [["DEL", "$:bell"]], "I2", "the bell has 0 elements while a batch is ready"),
        Plant("two bells", [["RPUSH", "$:bell", "1"]], "I2", "the bell has 2 elements"),
        Plant("done too early", [["HSET", "$:b:b", "state", "done"]], "I3", "done with 2 of 6 URLs"),
        Plant("done, not sealed", [["HSET", "$:b:b", "state", "done", "sealed", "0"]], "I3", "and not sealed"),
        Plant("jobs left", [["HSET", "$:b:b", "state", "cancelled"]], "I3", "1 jobs are left"),
        Plant("still ready", [["HSET", "$:b:b", "state", "cancelled"]], "I3", "in a ready list"),
        Plant("still among the running", [["HSET", "$:b:b", "state", "cancelled"]], "I3", "cancelled, and in the set"),
        Plant("not among the running", [["SREM", "$:running", "b"]], "I3", "running, and not in the set"),
        Plant("never completed", [["HSET", "$:b:b", "finished", "6"]], "I3", "every URL ended, but"),
        Plant("an unknown state", [["HSET", "$:b:b", "state", "odd"]], "I3", "the state is 'odd'"),
        Plant("sealed short", [["HSET", "$:b:b", "total", "7"]], "I3", "sealed with 7 URLs, but 6"),
        Plant(
            "a claim that its worker does not know of", [["HSET", "$:own:w", "#unheld", "b:2:2@b b:9:1@b"]], "I4",
            "w does not know of 1 claims that it has, the first is b:2:2@b"),
        Plant("claims of nobody", [["ZREM", "$:workers", "w"]], "I4", "w has 2 claims and is not registered"),
        Plant(
            "a worker's count", [["HINCRBY", "$:b:b:w", "w:1", "1"]], "I4", "downloaded is 1, but the workers' sum is 2"
        ),
        Plant("a worker's bytes", [["HDEL", "$:b:b:w", "w:bytes"]], "I4", "bytes is 100, but the workers' sum is 0"),
    ]

    private func planted() async throws -> QueueFixture {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2, 2, 2], fields: [("total", "6")])
        try await f.join("w", "v")
        let jobs = try await f.claim("w", 1, count: 2).map(\.job)
        _ = try await f.queue.reports.send(
            [QueueFixture.report(jobs[0], [.downloaded, .badImage], isFinal: false)], worker: "w")
        #expect(try await f.findings("b") == [])
        return f
    }

    @Test("Every planted violation is found", arguments: plants)
    func finds(_ plant: Plant) async throws {
        let f = try await planted()
        for command in plant.commands {
            try await f.queue.connection.command(command.map { RedisArgument($0.replacing("$", with: f.keys.root)) })
        }
        let findings = try await BatchCheck(queue: f.queue, batch: "b").run()
        #expect(findings.contains { $0.invariant == plant.invariant && $0.message.contains(plant.says) }, "\(findings)")
    }

    @Test("Parts of a split job, a paused batch and another batch's jobs are no findings")
    func noFindings() async throws {
        let f = try await planted()
        let job = QueueFixture.jobs("b", from: 2, sizes: [2])[0]
        try await f.queue.jobs.split(worker: "w", claim: job.claim, into: job.split(into: 2))
        #expect(try await f.findings("b") == [])
        _ = try await f.claim("v", 1, count: 2)
        #expect(try await f.findings("b") == [])
        try await f.fill("b2", sizes: [1, 1])
        _ = try await f.claim("v", 2, count: 2)
        #expect(try await f.findings("b", "b2") == [])
        try await f.redis("HSET", f.keys.batch("b2"), "paused", "1")
        try await f.redis("LREM", f.keys.ready(.normal), "0", "b2")
        if try await f.redis("EXISTS", f.keys.ready(.normal)).int == 0 { try await f.redis("DEL", f.keys.bell) }
        #expect(try await f.findings("b", "b2") == [])
    }

    @Test("The outcomes of a batch that is over are read in parts")
    func long() async throws {
        let f = try await QueueFixture()
        let total = (1 << 20) + 5
        try await f.fill("b", sizes: [])
        try await f.redis(
            "HSET", f.keys.batch("b"), "pushed", String(total), "total", String(total), "finished", String(total), "o2",
            String(total))
        try await f.redis("HSET", f.keys.workerCounts("b"), "w:with:colons:2", String(total))
        try await f.redis("SET", f.keys.outcomes("b"), String(repeating: "\u{2}", count: total))
        #expect(try await f.findings("b") == [])
        try await f.redis("SETRANGE", f.keys.outcomes("b"), String(total - 1), "\u{0}")
        #expect(try await f.findings("b").count == 2)
    }

    @Test("A batch that is not there is not found")
    func missing() async throws {
        let f = try await QueueFixture()
        await #expect { try await BatchCheck(queue: f.queue, batch: "b").run() } throws: {
            ($0 as? PrefetchError)?.kind == .notFound
        }
    }
}

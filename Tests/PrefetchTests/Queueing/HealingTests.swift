import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("Keys that were lost or have a wrong type", .timeLimit(.minutes(5)))
struct HealingTests {
    /// A batch `b` of `count` URLs in jobs of `size`.
    struct Plant {
        let f: QueueFixture

        init(count: Int, size: Int = 2) async throws {
            f = try await QueueFixture()
            try await fill(count: count, size: size)
        }

        func fill(count: Int, size: Int = 2) async throws {
            try await f.fill(sizes: stride(from: 0, to: count, by: size).map { min(size, count - $0) })
        }

        /// Heals, and returns what it said.
        @discardableResult
        func heal() async throws -> [String] {
            // One of a wrong type stays.
            _ = try? await f.redis("GETDEL", f.keys.healed)
            return try await f.queue.healing.heal(every: 60_000, scans: true)
        }

        /// Everything that is wrong, of the batch and of the queue.
        func findings() async throws -> [String] {
            let own = try await f.redis("EXISTS", f.keys.batch("b")).int == 1 ? try await f.findings("b") : []
            return try await QueueCheck(queue: f.queue).run().map { "\($0.invariant) \($0.message)" } + own
        }

        /// Works until there is nothing to claim.
        func finish(_ worker: String = "last") async throws {
            try await f.join(worker)
            var sequence = 0
            while true {
                sequence += 1
                let claims = try await f.claim(worker, sequence, count: 8)
                if claims.isEmpty { return }
                for claim in claims { try await f.finish(claim.job, worker) }
            }
        }
    }

    /// What becomes of a batch after some damage.
    enum End {
        /// It ends with each URL once, and nothing is wrong.
        case whole
        /// It ends, and the check finds what is wrong of it.
        case wrong
        /// It cannot end, and says so.
        case broken
        /// Redis has no record of it any more.
        case gone
    }

    /// Something broken in a batch of 3 jobs with 2 URLs each: `w` has the first two, has ended one URL of the first well and the other
    /// badly; the third waits. `$` is the root of the keys.
    struct Damage: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var end: End
        var commands: [[String]]

        init(_ name: String, _ end: End, _ commands: [[String]]) {
            (testDescription, self.end, self.commands) = (name, end, commands)
        }
    }

    static let damages = [
        Damage("nothing", .whole, []),
        Damage("a registration gone", .whole, [["ZREM", "$:workers", "w"]]),
        Damage("not in the sets", .whole, [["SREM", "$:running", "b"], ["ZREM", "$:batches", "b"]]),
        Damage("in no set that lists it", .whole, [["DEL", "$:batches", "$:running", "$:ready:normal", "$:bell"]]),
        Damage("the bell gone", .whole, [["DEL", "$:bell"]]),
        Damage("the bell twice", .whole, [["RPUSH", "$:bell", "1"]]),
        Damage("in no ready list", .whole, [["DEL", "$:ready:normal"]]),
        Damage("in two ready lists", .whole, [["RPUSH", "$:ready:high", "b"], ["RPUSH", "$:ready:normal", "b"]]),
        Damage("strangers in the sets", .whole, [["RPUSH", "$:ready:low", "x"], ["SADD", "$:running", "y"]]),
        Damage("a slot of nobody", .whole, [["HSET", "$:slots", "home", "z"]]),
        Damage("a string for the bell", .whole, [["SET", "$:bell", "x"]]),
        Damage("a string for the ready list", .whole, [["SET", "$:ready:normal", "x"]]),
        Damage("a string for the running batches", .whole, [["SET", "$:running", "x"]]),
        Damage("a string for the workers", .whole, [["SET", "$:workers", "x"]]),
        Damage("a string for the slots", .whole, [["SET", "$:slots", "x"]]),
        Damage("a hash for the mark of the healing", .whole, [["DEL", "$:healed"], ["HSET", "$:healed", "x", "x"]]),
        Damage("workers' counts gone", .wrong, [["DEL", "$:b:b:w"]]),
        Damage("workers' counts too high", .wrong, [["HINCRBY", "$:b:b:w", "w:1", "7"]]),
        Damage("an outcome that does not exist", .broken, [["SETRANGE", "$:b:b:o", "4", "\u{20}"]]),
        Damage("an outcome beyond the list", .wrong, [["SETRANGE", "$:b:b:o", "60", "\u{1}"]]),
        Damage("details of URLs that were not skipped", .wrong, [["HSET", "$:b:b:skipped", "0", "x", "77", "x"]]),
        Damage("a failure without a record", .wrong, [["DEL", "$:b:b:records"]]),
        Damage("a record cut off", .wrong, [["HSET", "$:b:b:records", "0", "\u{1}\u{1}\u{0}"]]),
        Damage("finished too high", .wrong, [["HINCRBY", "$:b:b", "finished", "2"]]),
        Damage("garbage text", .whole, [["LPUSH", "$:jobs:b", "hello\u{1}\u{1B}[31m"]]),
        Damage(
            "a job of another batch", .whole, [["RPUSH", "$:jobs:b", "prefetch-job 1 c:4:1 00000000\n5\thttp://h\n"]]),
        Damage("a job beyond the list", .whole, [["LPUSH", "$:jobs:b", "prefetch-job 1 b:4000000000:1 0\n5\tx\n"]]),
        Damage("a job that was replaced", .broken, [["LSET", "$:jobs:b", "0", "prefetch-job 1 b:4:2 0\n5\thttp://h"]]),
        Damage("finished gone", .broken, [["HDEL", "$:b:b", "finished"]]),
        Damage("outcomes gone", .wrong, [["DEL", "$:b:b:o"]]),
        Damage("the job list gone", .broken, [["DEL", "$:jobs:b"]]),
        Damage("list and claims gone", .broken, [["DEL", "$:jobs:b", "$:own:w"]]),
        Damage("pushed too high", .wrong, [["HSET", "$:b:b", "pushed", "300"]]),
        Damage("the total wrong", .broken, [["HSET", "$:b:b", "total", "300"]]),
        Damage("a string for the job list", .broken, [["SET", "$:jobs:b", "x"]]),
        Damage("a list for the outcomes", .broken, [["DEL", "$:b:b:o"], ["RPUSH", "$:b:b:o", "x"]]),
        Damage("a string for the deaths", .broken, [["SET", "$:b:b:tries", "x"]]),
        Damage("a string for the details", .broken, [["SET", "$:b:b:skipped", "x"]]),
        Damage("a string for the records", .broken, [["SET", "$:b:b:records", "x"]]),
        Damage("a string for the workers' counts", .broken, [["SET", "$:b:b:w", "x"]]),
        Damage("its record gone", .gone, [["DEL", "$:b:b"]]),
        Damage("a string for its record", .gone, [["SET", "$:b:b", "x"]]),
        Damage("a state that does not exist", .gone, [["HSET", "$:b:b", "state", "tired"]]),
    ]

    /// A batch with this damage, after its workers did all that they could.
    private func damaged(_ damage: Damage) async throws -> Plant {
        let plant = try await Plant(count: 6)
        let f = plant.f
        try await f.join("w", "v")
        let jobs = try await f.claim("w", 1, count: 2).map(\.job)
        _ = try await f.queue.reports.send(
            [QueueFixture.report(jobs[0], [.downloaded, .badImage], isFinal: false)], worker: "w")
        #expect(try await plant.findings() == [])
        for command in damage.commands {
            try await f.queue.connection.command(command.map { RedisArgument($0.replacing("$", with: f.keys.root)) })
        }
        if !damage.commands.isEmpty { #expect(try await plant.findings() != []) }
        let said = try await plant.heal()
        #expect(try await plant.heal() == [], "after \(said)")
        // Who had jobs goes on; then the others do what is left.
        for job in jobs { _ = try? await f.queue.reports.send([QueueFixture.report(job, [.hit, .hit])], worker: "w") }
        try await plant.finish()
        try await plant.heal()
        return plant
    }

    @Test("What belongs to no batch heals; a batch ends with each URL once, or says why it cannot", arguments: damages)
    func heals(_ damage: Damage) async throws {
        let plant = try await damaged(damage)
        let f = plant.f
        let status = try await f.queue.batches.status(of: "b")
        switch damage.end {
        case .whole:
            #expect(try await plant.findings() == [])
            #expect(status?.state == .done && status?.counts.finished == 6 && status?.total == 6)
        case .wrong:
            #expect(try await plant.findings() != [])
            #expect(status?.state == .done)
        case .broken:
            #expect(try await plant.findings() != [])
            #expect(status?.state == .running && status?.broken != nil)
            let snapshot = try await f.queue.views.snapshot()
            #expect(snapshot.running.map(\.id) == ["b"] && snapshot.running[0].broken == status?.broken)
        case .gone:
            let own = (try? await f.findings("b")) ?? []
            #expect(try await QueueCheck(queue: f.queue).run().isEmpty == false || own != [])
            #expect(status == nil)
        }
    }

    @Test(
        "Whatever is broken of a batch, it can be cancelled or removed, and made again under its name",
        arguments: damages)
    func madeAgain(_ damage: Damage) async throws {
        for isCancelled in [false, true] {
            let plant = try await damaged(damage)
            let f = plant.f
            if isCancelled {
                let before = try await f.queue.batches.cancel(batch: "b")
                let status = try await f.queue.batches.status(of: "b")
                #expect(
                    before == "broken" ? status == nil : status == nil || status?.state != .running, "\(before ?? "")")
                #expect(try await f.queue.catalog.running() == [])
            }
            _ = try await f.queue.batches.remove(batch: "b", force: true)
            #expect(try await plant.findings() == [])
            #expect(try await f.queue.catalog.ids() == [])
            #expect(try await f.queue.keySpace.names(startingWith: "b:b").isEmpty)
            #expect(try await f.queue.keySpace.names(startingWith: "jobs:").isEmpty)
            try await plant.fill(count: 6)
            try await plant.finish("again")
            #expect(try await plant.findings() == [])
            #expect(try await f.queue.batches.status(of: "b")?.counts.finished == 6)
        }
    }

    @Test("One worker heals at a time, and a key of the queue that has a wrong type is put aside at once by any")
    func turns() async throws {
        let plant = try await Plant(count: 2)
        let f = plant.f
        #expect(try await f.queue.healing.heal(every: 60_000) == [])
        try await f.redis("DEL", f.keys.ready(.normal))
        try await f.redis("SET", f.keys.slots, "x")
        let aside = "put aside \(f.keys.slots) is a string, not a hash: it is \(f.keys.aside("slots")) for a week"
        #expect(try await f.queue.healing.heal(every: 60_000) == [aside, "b has jobs and is in no ready list"])
        try await f.redis("DEL", f.keys.ready(.normal))
        #expect(try await f.queue.healing.heal(every: 60_000) == [])
        #expect(try await plant.heal() == ["b has jobs and is in no ready list"])
        try await plant.finish()
        #expect(try await plant.findings() == [])
    }

    @Test("A batch whose key has its type again is not broken any more, and goes on")
    func back() async throws {
        let plant = try await Plant(count: 4)
        let f = plant.f
        try await f.redis("RENAME", f.keys.jobs("b"), "saved")
        try await f.redis("SET", f.keys.jobs("b"), "x")
        try await f.join("w")
        #expect(try await f.claim("w", 1).isEmpty)
        #expect(try await f.queue.batches.status(of: "b")?.broken?.hasPrefix("WRONGTYPE") == true)
        try await plant.heal()
        #expect(try await f.queue.batches.status(of: "b")?.broken?.hasPrefix("WRONGTYPE") == true)
        try await f.redis("RENAME", "saved", f.keys.jobs("b"))
        #expect(try await plant.heal() == ["b has jobs and is in no ready list"])
        #expect(try await f.queue.batches.status(of: "b")?.broken == nil)
        try await plant.finish()
        #expect(try await plant.findings() == [])
        #expect(try await f.queue.batches.status(of: "b")?.state == .done)
    }

    @Test("Jobs of a worker that is neither registered nor alive go back, without counting a death")
    func orphans() async throws {
        let plant = try await Plant(count: 200, size: 1)
        let f = plant.f
        try await f.join("w")
        let claims = try await f.claim("w", 1, count: 200)
        #expect(claims.count == 200)
        try await f.redis("DEL", f.keys.workers)
        #expect(try await plant.heal().contains("gave 200 jobs of w, which is not registered, back to their lists"))
        #expect(try await f.redis("EXISTS", f.keys.tries("b"), f.keys.owned(by: "w")).int == 0)
        try await plant.finish()
        #expect(try await plant.findings() == [])
        #expect(try await f.queue.batches.status(of: "b")?.state == .done)
    }

    @Test("A batch that is fed slowly, or whose jobs are all with workers, misses none")
    func slow() async throws {
        let f = try await QueueFixture()
        try await f.open(fields: [("total", "4")])
        try await f.push(offset: 0, sizes: [2])
        try await f.join("w")
        let claims = try await f.claim("w", 1)
        #expect(try await f.queue.healing.heal(every: 60_000) == [])
        for claim in claims { try await f.finish(claim.job, "w") }
        try await f.redis("DEL", f.keys.healed)
        #expect(try await f.queue.healing.heal(every: 60_000) == [])
        #expect(try await f.queue.batches.status(of: "b")?.broken == nil)
    }
}

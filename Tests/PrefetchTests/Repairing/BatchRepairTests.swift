import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("The repair of a batch", .timeLimit(.minutes(5)))
struct BatchRepairTests {
    /// A batch `b` of `count` URLs with its list on disk, in jobs of `size`.
    struct Plant {
        let f: QueueFixture
        let folder = TemporaryDirectory()
        let list: URLList

        init(count: Int, size: Int = 2, sealed: Bool = true) async throws {
            f = try await QueueFixture()
            folder.write(Array((0..<count).map { "http://h/b/\($0)\n" }.joined().utf8), to: "urls.txt")
            list = try URLList(path: folder.path("urls.txt"))
            try await f.open(
                fields: [("total", String(count)), ("list", list.path), ("hash", list.hash), ("keep", "600")])
            let sizes = stride(from: 0, to: count, by: size).map { min(size, count - $0) }
            for start in stride(from: 0, to: sizes.count, by: 500) {
                try await f.push(offset: start * size, sizes: Array(sizes[start..<min(start + 500, sizes.count)]))
            }
            if sealed { _ = try await f.queue.batches.seal(batch: "b", total: count) }
        }

        /// Repairs, and returns what it said.
        @discardableResult
        func repair() async throws -> [String] {
            let said = Locked<[String]>([])
            for line in try await QueueRepair(queue: f.queue).run() { said.withLock { $0.append(line) } }
            let found = try await BatchRepair(queue: f.queue, batch: "b") { line in said.withLock { $0.append(line) } }
                .run()
            #expect(found)
            return said.withLock { $0 }
        }

        /// Everything that is wrong, of the batch and of the queue.
        func findings() async throws -> [String] {
            try await QueueCheck(queue: f.queue).run().map { "\($0.invariant) \($0.message)" } + f.findings("b")
        }

        /// The names of the jobs on the list, in the order they are popped.
        func waiting() async throws -> [String] {
            let payloads = try await f.redis("LRANGE", f.keys.jobs("b"), "0", "-1").array ?? []
            return payloads.reversed().compactMap { $0.bytes.flatMap { PrefetchJob($0)?.name } }
        }

        /// Works until nothing is left.
        func finish(_ worker: String = "last") async throws {
            try await f.join(worker)
            var sequence = 0
            while try await f.field("state", of: "b") == "running" {
                sequence += 1
                let claims = try await f.claim(worker, sequence, count: 8)
                try #require(!claims.isEmpty, "open URLs are in no job")
                for claim in claims { try await f.finish(claim.job, worker) }
            }
        }
    }

    /// Something broken in a batch of 3 jobs with 2 URLs each: `w` has the first two, has ended one URL of the first well and the other
    /// badly; the third waits. `$` is the root of the keys.
    struct Damage: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var commands: [[String]]

        init(_ name: String, _ commands: [[String]]) { (testDescription, self.commands) = (name, commands) }
    }

    static let damages = [
        Damage("nothing", []),
        Damage("finished too high", [["HINCRBY", "$:b:b", "finished", "4"]]),
        Damage("counts gone", [["HDEL", "$:b:b", "finished", "skipped", "o1", "o10", "bytes"]]),
        Damage("workers' counts gone", [["DEL", "$:b:b:w"]]),
        Damage("workers' counts too high", [["HINCRBY", "$:b:b:w", "w:1", "7"], ["HSET", "$:b:b:w", "v:1", "2"]]),
        Damage("an outcome that does not exist", [["SETRANGE", "$:b:b:o", "4", "\u{20}"]]),
        Damage("an outcome beyond the list", [["SETRANGE", "$:b:b:o", "60", "\u{1}"]]),
        Damage("outcomes gone", [["DEL", "$:b:b:o"]]),
        Damage("the job list gone", [["DEL", "$:jobs:b"]]),
        Damage("a claim gone", [["HDEL", "$:own:w", "b:2:2@b"]]),
        Damage("all claims gone", [["DEL", "$:own:w"]]),
        Damage("list and claims gone", [["DEL", "$:jobs:b", "$:own:w"]]),
        Damage("a claim that its worker does not know of", [["HSET", "$:own:w", "#unheld", "b:2:2@b"]]),
        Damage("a registration gone", [["ZREM", "$:workers", "w"]]),
        Damage("a job twice", [["COPY", "$:jobs:b", "$:copy"], ["LMOVE", "$:copy", "$:jobs:b", "LEFT", "LEFT"]]),
        Damage("garbage text", [["LPUSH", "$:jobs:b", "hello\u{1}\u{1B}[31m"]]),
        Damage("a truncated job", [["LPUSH", "$:jobs:b", "prefetch-job 1 b:4:2 00000000\n5\thttp://h"]]),
        Damage("a job of another batch", [["RPUSH", "$:jobs:b", "prefetch-job 1 c:4:1 00000000\n5\thttp://h\n"]]),
        Damage("a job beyond the list", [["LPUSH", "$:jobs:b", "prefetch-job 1 b:4000000000:1 0\n5\tx\n"]]),
        Damage("pushed too low", [["HSET", "$:b:b", "pushed", "3"]]),
        Damage("pushed too high", [["HSET", "$:b:b", "pushed", "300"]]),
        Damage("pushed gone", [["HDEL", "$:b:b", "pushed"]]),
        Damage("the total wrong", [["HSET", "$:b:b", "total", "300"]]),
        Damage("a state that does not exist", [["HSET", "$:b:b", "state", "tired"]]),
        Damage("done too early", [["HSET", "$:b:b", "state", "done"], ["SREM", "$:running", "b"]]),
        Damage("not in the sets", [["SREM", "$:running", "b"], ["ZREM", "$:batches", "b"]]),
        Damage("the bell gone", [["DEL", "$:bell"]]),
        Damage("the bell twice", [["RPUSH", "$:bell", "1"]]),
        Damage("in no ready list", [["DEL", "$:ready:normal"]]),
        Damage("in two ready lists", [["RPUSH", "$:ready:high", "b"], ["RPUSH", "$:ready:normal", "b"]]),
        Damage("strangers in the sets", [["RPUSH", "$:ready:low", "x"], ["SADD", "$:running", "y"]]),
        Damage("a slot of nobody", [["HSET", "$:slots", "home", "z"]]),
        Damage("deaths of no job", [["HSET", "$:b:b:tries", "b:9:9", "2", "b:4:2!", "3"]]),
        Damage("details of URLs that were not skipped", [["HSET", "$:b:b:skipped", "0", "x", "77", "x"]]),
        Damage("a failure without a record", [["DEL", "$:b:b:records"]]),
        Damage("a record of no failure", [["HSET", "$:b:b:records", "9", "123456789"]]),
        Damage("a record cut off", [["HSET", "$:b:b:records", "0", "\u{1}\u{1}\u{0}"]]),
        Damage(
            "records of URLs that were not skipped",
            [["HSET", "$:b:b:records", "0", "\u{0}\u{5}\u{1}\u{1}\u{1}\u{0}\u{0}\u{0}\u{1}"]]),
        Damage("a string for the records", [["DEL", "$:b:b:records"], ["SET", "$:b:b:records", "x"]]),
        Damage("poison without a word", [["SETRANGE", "$:b:b:o", "5", "\u{0F}"]]),
        Damage("a string for a job list", [["SET", "$:jobs:b", "x"]]),
        Damage("a list for the outcomes", [["DEL", "$:b:b:o"], ["RPUSH", "$:b:b:o", "x"]]),
        Damage("a string for the deaths", [["SET", "$:b:b:tries", "x"]]),
        Damage("a string for the details", [["SET", "$:b:b:skipped", "x"]]),
        Damage("a string for the workers' counts", [["SET", "$:b:b:w", "x"]]),
        Damage("a string for the bell", [["SET", "$:bell", "x"]]),
        Damage("a string for the ready list", [["SET", "$:ready:normal", "x"]]),
        Damage("a string for the slots", [["SET", "$:slots", "x"]]),
        Damage(
            "everything but hash and outcomes gone",
            [["DEL", "$:jobs:b", "$:own:w", "$:workers", "$:b:b:w", "$:running", "$:ready:normal", "$:bell"]]),
    ]

    @Test("What is broken is mended, what is in order stays, and the batch ends with each URL once", arguments: damages)
    func mends(_ damage: Damage) async throws {
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
        let said = try await plant.repair()
        #expect(try await plant.findings() == [], "\(said)")
        #expect(said.isEmpty == damage.commands.isEmpty, "\(said)")
        #expect(try await plant.repair() == [])
        // Who had jobs goes on; then the others do what is left.
        for job in jobs { try await f.finish(job, "w") }
        try await plant.finish()
        #expect(try await plant.findings() == [])
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.state == .done && status.counts.finished == 6 && status.total == 6)
        let sum = try await f.queue.results.workerCounts(of: "b").values.reduce(into: PrefetchCounts()) { $0 += $1 }
        #expect(sum == status.counts)
    }

    @Test("Exactly the open URLs that are in no job are pushed again, as jobs of neighbours that go first")
    func exactly() async throws {
        let plant = try await Plant(count: 20)
        let f = plant.f
        try await f.join("w")
        let claims = try await f.claim("w", 1, count: 3)
        try await f.finish(claims[0].job, "w")
        _ = try await f.queue.reports.send(
            [QueueFixture.report(claims[2].job, [nil, .hit], isFinal: false)], worker: "w")
        // 0-1 ended, 2-3 and 4 with w (5 ended), 6-19 wait; 8-13 and 18-19 get lost, and so does the claim of 4.
        for job in QueueFixture.jobs("b", sizes: Array(repeating: 2, count: 10))
        where [8, 10, 12, 18].contains(job.base) {
            #expect(
                try await f.queue.connection.command(
                    ["LREM", RedisArgument(f.keys.jobs("b")), "1", RedisArgument(job.encoded())]).int == 1)
        }
        try await f.redis("HDEL", f.keys.owned(by: "w"), "b:4:2@b")
        let said = try await plant.repair()
        #expect(said.contains { $0.contains("pushed 9 URLs of b again") }, "\(said)")
        // A list of 20 is cut into single URLs.
        let again = [4, 8, 9, 10, 11, 12, 13, 18, 19].map { "b:\($0):1" }
        #expect(try await plant.waiting() == again + ["b:6:2", "b:14:2", "b:16:2"])
        #expect(try await plant.findings() == [])
        try await f.finish(claims[1].job, "w")
        try await plant.finish()
    }

    @Test("Without the list nothing is pushed, jobs stay where they are, and the counts are mended all the same")
    func withoutList() async throws {
        let plant = try await Plant(count: 6)
        let f = plant.f
        try await f.redis("HSET", f.keys.batch("b"), "list", "/nowhere/urls.txt", "finished", "3")
        try await f.redis("LPOP", f.keys.jobs("b"))
        let error = await #expect(throws: PrefetchError.self) { try await plant.repair() }
        #expect(error?.kind == .notFound && error?.hint.contains("--list FILE") == true, "\(String(describing: error))")
        #expect(try await plant.findings() == ["I2 2 open URLs are in no job, the first has the index 4"])
        #expect(try await f.redis("HEXISTS", f.keys.batch("b"), "repair").int == 0)
        #expect(try await BatchRepair(queue: f.queue, batch: "b", listPath: plant.list.path) { _ in }.run())
        #expect(try await plant.findings() == [])
    }

    @Test("One repair at a time has a batch; one that died is let go by whoever reaps")
    func exclusive() async throws {
        let plant = try await Plant(count: 6)
        let f = plant.f
        #expect(try await f.queue.repairSteps.take("b", token: "a") == .taken)
        #expect(try await f.queue.repairSteps.take("b", token: "a") == .taken)
        await #expect { try await plant.repair() } throws: { ($0 as? PrefetchError)?.kind == .stopped }
        #expect(try await f.queue.repairSteps.hold("b", token: "a", begins: true) == 6)
        #expect(try await f.queue.repairSteps.hold("b", token: "b", begins: true) == nil)
        try await f.join("w")
        #expect(try await f.claim("w", 1).isEmpty)
        #expect(try await plant.findings() == [])
        #expect(try await f.queue.workers.reap() == .nobody)
        #expect(try await f.claim("w", 2).isEmpty)
        try await f.redis("HSET", f.keys.held, "b", "1")
        #expect(try await f.queue.workers.reap() == .nobody)
        #expect(try await f.claim("w", 3).count == 1)
        #expect(try await f.queue.repairSteps.hold("b", token: "a", begins: false) == nil)
        try await f.redis("HSET", f.keys.batch("b"), "repair", "a 1")
        try await plant.repair()
        #expect(try await plant.findings() == [])
        #expect(try await BatchRepair(queue: f.queue, batch: "none") { _ in }.run() == false)
    }

    @Test(
        "Whichever calls of a repair are refused, or carried out and answered with an error, the next repair need not wait",
        arguments: [1, 2])
    func refused(times: Int) async throws {
        let plant = try await Plant(count: 6)
        let f = plant.f
        guard case .unix(let path) = f.queue.connection.configuration.endpoint else { throw CancellationError() }
        let proxy = FaultProxy(target: path)
        let other = PrefetchQueue(
            connection: RedisConnection(try RedisConfiguration(url: proxy.url), name: "test"),
            name: f.queue.catalog.queueName)
        func repair() async throws { _ = try await BatchRepair(queue: other, batch: "b") { _ in }.run() }
        // So that every script is loaded, and a call is one EVALSHA.
        try await repair()
        var (calls, failures) = (0, 0)
        while true {
            let met = proxy.triggered
            for isCarriedOut in [false, true] {
                // Something to push again, and something to count.
                try await f.redis("RPOP", f.keys.jobs("b"))
                try await f.redis("HSET", f.keys.batch("b"), "finished", "4")
                let reply = "-ERR upstream failure\r\n"
                proxy.arm(
                    isCarriedOut
                        ? .replaceReply(containing: "EVALSHA", reply: reply)
                        : .answer(containing: "EVALSHA", reply: reply), times: times, skipping: calls)
                do { try await repair() } catch { failures += 1 }
                proxy.arm(.cutMidReply, times: 0)
                #expect(try await f.redis("HMGET", f.keys.batch("b"), "repair", "filled") == .array([.null, .null]))
                #expect(try await f.redis("EXISTS", f.keys.held).int == 0, "call \(calls)")
                try await repair()
                #expect(try await plant.findings() == [], "call \(calls)")
            }
            if proxy.triggered == met { break }
            calls += 1
        }
        // TAKE, RECOUNT, TALLY, HOLD, HOLD of the pieces, LETGO, REFILL, RECORDS and FINISH at least.
        #expect(calls >= 9 && failures > calls, "\(calls) calls, \(failures) repairs failed")
        try await plant.finish()
    }

    @Test("A repair whose end meets a key of a wrong type has let the batch go")
    func lostEnd() async throws {
        let plant = try await Plant(count: 6)
        let f = plant.f
        try await f.redis("HSET", f.keys.batch("b"), "slot", "home")
        try await f.redis("HSET", f.keys.slots, "home", "b")
        try await f.redis("DEL", f.keys.slots)
        try await f.redis("SET", f.keys.slots, "x")
        await #expect { _ = try await BatchRepair(queue: f.queue, batch: "b") { _ in }.run() } throws: {
            ($0 as? PrefetchError)?.kind == .configuration
        }
        #expect(try await f.redis("HEXISTS", f.keys.batch("b"), "repair").int == 0)
        #expect(try await f.redis("EXISTS", f.keys.held).int == 0)
        try await plant.repair()
        #expect(try await plant.findings() == [])
        #expect(try await f.redis("HGET", f.keys.slots, "home").string == "b")
    }

    @Test("A repair that another one has followed ends without a change")
    func overtaken() async throws {
        let plant = try await Plant(count: 6)
        let f = plant.f
        #expect(try await f.queue.repairSteps.take("b", token: "a") == .taken)
        try await f.redis("HSET", f.keys.batch("b"), "repair", "a 1")
        #expect(try await f.queue.repairSteps.take("b", token: "b") == .taken)
        #expect(try await f.queue.repairSteps.hold("b", token: "b", begins: true) == 6)
        #expect(try await f.queue.repairSteps.finish("b", token: "a") == ("running", 0))
        #expect(try await f.queue.repairSteps.hold("b", token: "b", begins: false) == 6)
        #expect(try await f.queue.repairSteps.finish("b", token: "b") == ("running", 0))
        #expect(try await f.queue.repairSteps.finish("b", token: "b") == ("running", 0))
        #expect(try await plant.findings() == [])
    }

    @Test("Outcomes that are reported while they are counted anew are counted once")
    func recountUnderReports() async throws {
        let plant = try await Plant(count: 140_000, size: 200)
        let f = plant.f
        try await f.join("w")
        var sequence = 0
        func work() async throws {
            sequence += 1
            for claim in try await f.claim("w", sequence, count: 8) { try await f.finish(claim.job, "w", .hit) }
        }
        for _ in 0..<20 { try await work() }
        try await f.redis("HSET", f.keys.batch("b"), "finished", "7", "o2", "11")
        #expect(try await f.queue.repairSteps.take("b", token: "t") == .taken)
        // Between any two pieces workers go on, with URLs on both sides of what is counted already; and a reply is lost.
        for from in stride(from: 0, to: 196_608, by: 65_536) {
            _ = try await f.queue.repairSteps.recountPiece("b", token: "t", from: from, limit: 140_000)
            #expect(
                try await f.queue.repairSteps.recountPiece("b", token: "t", from: from, limit: 140_000).first
                    == (from == 0 ? "OK" : "AT"))
            try await work()
            let late = QueueFixture.jobs("b", from: 139_000 - from, sizes: [200])[0]
            try await f.finish(late, "stale", .hit)
        }
        let changes = try await f.queue.repairSteps.tally("b", token: "t")
        #expect(changes.contains { $0.name == "finished" } && changes.contains { $0.name == "o2" })
        #expect(try await f.queue.repairSteps.tally("b", token: "t").isEmpty)
        _ = try await f.queue.repairSteps.finish("b", token: "t")
        #expect(try await f.findings("b").filter { !$0.contains("in no job") && !$0.contains("several") } == [])
    }

    @Test("Workers that claim, end, die and come late during a hundred repairs find each URL once")
    func underFire() async throws {
        let plant = try await Plant(count: 3000, size: 3)
        let f = plant.f
        let isOver = Latch()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<3 {
                let queue = try await f.queueOfItsOwn()
                group.addTask {
                    var random = SystemRandomNumberGenerator()
                    var (life, sequence) = (0, 0)
                    while !isOver.isOpen {
                        let worker = "w\(number).\(life)"
                        if sequence == 0 { _ = try await queue.workers.join(worker: worker, lease: 60_000, about: []) }
                        sequence += 1
                        guard
                            case .claimed(let claims) = try await queue.jobs.claim(
                                worker: worker, sequence: sequence, count: 2, lease: 60_000)
                        else { continue }
                        let isDead = Int.random(in: 0..<10, using: &random) == 0
                        if isDead {
                            _ = try await queue.workers.reap(worker: worker)
                            (life, sequence) = (life + 1, 0)
                        }
                        // A dead one reports late, now and then.
                        for claim in claims where !isDead || Bool.random(using: &random) {
                            let outcomes = claim.job.entries.map { _ in PrefetchOutcome.hit }
                            _ = try await queue.reports.send([QueueFixture.report(claim.job, outcomes)], worker: worker)
                        }
                        if claims.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
                    }
                }
            }
            group.addTask {
                defer { isOver.open() }
                // Something is lost again and again; each time the repair brings back what is missing.
                while try await f.field("state", of: "b") == "running" {
                    try await f.redis("LPOP", f.keys.jobs("b"))
                    try await f.redis("RPOP", f.keys.jobs("b"))
                    _ = try await BatchRepair(queue: f.queue, batch: "b") { _ in }.run()
                }
            }
            try await group.waitForAll()
        }
        #expect(try await plant.findings() == [])
        #expect(try await f.queue.batches.status(of: "b")?.counts.finished == 3000)
    }
}

extension QueueFixture {
    /// The same queue over another connection.
    func queueOfItsOwn() async throws -> PrefetchQueue {
        PrefetchQueue(
            connection: RedisConnection(queue.connection.configuration, name: "test"), name: queue.catalog.queueName)
    }
}

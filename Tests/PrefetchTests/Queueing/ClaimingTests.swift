import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Claiming jobs", .timeLimit(.minutes(5)))
struct ClaimingTests {
    @Test("CLAIM with the same number gives the same jobs, and of these only what the worker still has")
    func replay() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2, 2, 2])
        try await f.join("w")
        let first = try await f.claim("w", 1, count: 2)
        #expect(first.map(\.job.name) == ["b:0:2", "b:2:2"])
        #expect(first.map(\.outcomes) == [[0, 0], [0, 0]] && first.map(\.deliveries) == [0, 0])
        #expect(try await f.claim("w", 1, count: 2) == first)
        _ = try await f.queue.reports.send(
            [QueueFixture.report(first[0].job, [nil, .hit], isFinal: false)], worker: "w")
        #expect(try await f.claim("w", 1, count: 2).map(\.outcomes) == [[0, 2], [0, 0]])
        try await f.finish(first[0].job, "w")
        #expect(try await f.claim("w", 1, count: 2).map(\.job) == [first[1].job])
        #expect(try await f.claim("w", 2, count: 2).map(\.job.name) == ["b:4:2"])
        #expect(try await f.claim("w", 3, count: 2).isEmpty)
        #expect(try await f.findings("b") == [])
    }

    @Test("CLAIM renews the lease, and tells a worker that is not registered")
    func lease() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1])
        #expect(try await f.queue.jobs.claim(worker: "w", sequence: 1, count: 1, lease: 60_000) == .lost)
        try await f.join("w")
        try await f.expire("w")
        #expect(try await f.claim("w", 1).count == 1)
        #expect((try await f.redis("ZSCORE", f.keys.workers, "w").string.flatMap(Double.init) ?? 0) > 1e12)
        #expect(try await f.queue.workers.reap() == .nobody)
        #expect(try await f.findings("b") == [])
    }

    @Test("Jobs start in the order of the batch", arguments: PrefetchOrder.allCases)
    func order(_ order: PrefetchOrder) async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1, 1], fields: [("order", order.rawValue)])
        try await f.join("w")
        let bases = try await f.claim("w", 1, count: 3).map(\.job.base)
        #expect(bases == (order == .fifo ? [0, 1, 2] : [2, 1, 0]))
        // What comes back goes first, in either order.
        try await f.push("b", offset: 3, sizes: [])
        _ = try await f.queue.jobs.release(worker: "w", jobs: ["b:2:1@b"], leaving: false)
        _ = try await f.queue.jobs.release(worker: "w", jobs: ["b:1:1@b"], leaving: false)
        #expect(try await f.claim("w", 2, count: 2).map(\.job.base) == [1, 2])
        #expect(try await f.findings("b") == [])
    }

    @Test("Priorities share 11 : 4 : 1 while all have jobs, and those that are left share as before")
    func turns() async throws {
        let f = try await QueueFixture()
        for priority in PrefetchPriority.allCases {
            try await f.open(priority.rawValue, priority: priority)
            try await f.push(priority.rawValue, sizes: Array(repeating: 1, count: 170))
        }
        try await f.join("w")
        func shares(_ sequence: Int, _ count: Int) async throws -> [Int] {
            let batches = try await f.claim("w", sequence, count: count).map(\.job.batch)
            return PrefetchPriority.allCases.map { priority in batches.count { $0 == priority.rawValue } }
        }
        #expect(try await shares(1, 160) == [110, 40, 10])
        #expect(try await f.findings("high", "normal", "low") == [])
        _ = try await f.queue.batches.cancel(batch: "high")
        #expect(try await shares(2, 30) == [0, 24, 6])
        #expect(try await shares(3, 500) == [0, 106, 154])
        #expect(try await f.redis("EXISTS", f.keys.bell).int == 0)
        #expect(try await f.findings("high", "normal", "low") == [])
    }

    @Test("Batches of one priority take turns")
    func rotation() async throws {
        let f = try await QueueFixture()
        for (batch, jobs) in [("a", 3), ("b", 1), ("c", 2)] {
            try await f.open(batch)
            try await f.push(batch, sizes: Array(repeating: 1, count: jobs))
        }
        try await f.join("w")
        #expect(try await f.claim("w", 1, count: 9).map(\.job.batch) == ["a", "b", "c", "a", "c", "a"])
        #expect(try await f.findings("a", "b", "c") == [])
    }

    @Test("Under endless high load, low still gets one claim in 16, and normal more", arguments: [true, false])
    func lowNeverStarves(isNormalThere: Bool) async throws {
        let f = try await QueueFixture()
        let all: [PrefetchPriority] = isNormalThere ? [.high, .normal, .low] : [.high, .low]
        for priority in all {
            try await f.open(priority.rawValue, priority: priority)
            try await f.push(priority.rawValue, sizes: Array(repeating: 1, count: 400))
        }
        try await f.join("w")
        var batches: [String] = []
        // One job a claim, as busy workers ask.
        for sequence in 1...320 { batches += try await f.claim("w", sequence).map(\.job.batch) }
        for start in 0...(320 - 16) {
            #expect(batches[start..<(start + 16)].contains("low"), "claims \(start) to \(start + 15)")
        }
        func share(_ priority: PrefetchPriority) -> Int { batches.count { $0 == priority.rawValue } }
        // 320 = 20 x 16, and 26 x 12 + 8.
        #expect(share(.low) == (isNormalThere ? 20 : 27) && share(.normal) == (isNormalThere ? 80 : 0))
        #expect(share(.high) == 320 - share(.normal) - share(.low))
        #expect(try await f.findings("high", "low") == [])
    }

    @Test(
        "Priorities share 11 : 4 : 1 of the URLs, whatever the sizes of their jobs, over any 2,000",
        arguments: [[4, 256, 256], [256, 4, 1], [1, 256, 63], [256, 256, 0], [256, 0, 256], [0, 256, 256]])
    func sharesOfPriorities(sizes: [Int]) async throws {
        let f = try await QueueFixture()
        let parts = zip(zip(PrefetchPriority.allCases, [11, 4, 1]), sizes).filter { $1 > 0 }.map { ($0.0, $0.1, $1) }
        let sum = parts.reduce(0) { $0 + $1.1 }
        for (priority, _, size) in parts {
            try await f.open(priority.rawValue, priority: priority)
            for number in 0..<3 {
                let count = 2000 / size
                try await f.push(
                    priority.rawValue, offset: number * count * size, sizes: Array(repeating: size, count: count))
            }
        }
        try await f.join("w")
        // The URLs in the order in which they were claimed.
        var claimed: [PrefetchPriority] = []
        var sequence = 0
        var left = 3 * (2000 / parts[0].2)
        // While all have jobs; the first takes the most.
        while left > 0 {
            sequence += 1
            let claim = try #require(try await f.claim("w", sequence).first)
            if claim.priority == parts[0].0 { left -= 1 }
            claimed += Array(repeating: claim.priority, count: claim.job.entries.count)
        }
        for (priority, weight, _) in parts {
            let counts = claimed.reduce(into: [0]) { $0.append($0.last! + ($1 == priority ? 1 : 0)) }
            let fair = 2000 * weight / sum
            for end in 2000...claimed.count {
                let share = counts[end] - counts[end - 2000]
                #expect(abs(share - fair) <= 200, "\(priority): \(share) of 2,000 URLs up to \(end), not \(fair)")
                if abs(share - fair) > 200 { break }
            }
        }
        for (priority, _, _) in parts { #expect(try await f.findings(priority.rawValue) == []) }
    }

    @Test(
        "A claim ends with the job that fills it, in either order, whatever the sizes of the jobs",
        arguments: PrefetchOrder.allCases)
    func claimsURLs(_ order: PrefetchOrder) async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 256, 2, 3, 256, 1], fields: [("order", order.rawValue)])
        try await f.join("w")
        var sizes: [[Int]] = []
        for (sequence, urls) in [1, 17, 6, 1000].enumerated() {
            let result = try await f.queue.jobs.claim(
                worker: "w", sequence: sequence + 1, count: 8, lease: 60_000, urls: urls)
            guard case .claimed(let claims) = result else {
                Issue.record("\(result)")
                return
            }
            sizes.append(claims.map(\.job.entries.count))
        }
        #expect(
            sizes == (order == .fifo ? [[1], [256], [2, 3, 256], [1]] : [[1], [256], [3, 2, 256], [1]]))
        #expect(try await f.findings("b") == [])
    }

    @Test("It is the turn of a higher priority only until it has had its share")
    func above() async throws {
        let f = try await QueueFixture()
        try await f.open("bulk", priority: .normal)
        try await f.push("bulk", sizes: Array(repeating: 256, count: 8))
        try await f.join("w")
        func claim(_ sequence: Int, above: PrefetchPriority? = nil) async throws -> [String] {
            let result = try await f.queue.jobs.claim(
                worker: "w", sequence: sequence, count: 1, lease: 60_000, urls: 1, above: above)
            guard case .claimed(let claims) = result else { return ["\(result)"] }
            return claims.map { "\($0.job.batch) \($0.priority)" }
        }
        func asks() async throws -> PrefetchPriority? {
            try await f.queue.workers.beat(
                worker: "w", lease: 60_000, trouble: false, batches: [BatchIdentity(id: "bulk", nonce: "bulk")],
                about: []
            )?.above
        }
        #expect(try await claim(1) == ["bulk normal"])
        #expect(try await asks() == nil)
        #expect(try await claim(2, above: .normal) == [])
        try await f.open("urgent", priority: .high)
        try await f.push("urgent", sizes: Array(repeating: 256, count: 8))
        #expect(try await asks() == .normal)
        // 11 : 4 of the URLs: normal has had one job of 256, high has two before it is the other's turn.
        #expect(try await claim(3, above: .normal) == ["urgent high"])
        #expect(try await claim(4, above: .normal) == ["urgent high"])
        #expect(try await claim(5, above: .normal) == ["urgent high"])
        #expect(try await asks() == nil)
        #expect(try await claim(6, above: .normal) == [])
        #expect(try await claim(7) == ["bulk normal"])
        #expect(try await asks() == .normal)
        // Not while nothing may start.
        _ = try await f.queue.control.pause(.worker("w"))
        #expect(try await asks() == nil)
    }

    @Test("Batches of one priority share by URLs, whatever the sizes of their jobs, and nothing piles up")
    func sharesByURLs() async throws {
        let f = try await QueueFixture()
        try await f.open("large")
        try await f.push("large", sizes: Array(repeating: 256, count: 12))
        try await f.join("w")
        // Alone it has had much already; that counts for nothing now.
        #expect(try await f.claim("w", 1, count: 4).count == 4)
        try await f.open("small")
        try await f.push("small", sizes: Array(repeating: 2, count: 300))
        try await f.open("odd")
        try await f.push("odd", sizes: Array(repeating: 63, count: 12))
        var urls: [String: Int] = [:]
        var most = 0
        var sequence = 1
        while urls["small", default: 0] < 600 {
            sequence += 1
            guard let job = try await f.claim("w", sequence).first?.job else { break }
            urls[job.batch, default: 0] += job.entries.count
            let counts = ["large", "small", "odd"].map { urls[$0, default: 0] }
            most = max(most, (counts.max() ?? 0) - (counts.min() ?? 0))
        }
        #expect(urls["small"] == 600)
        #expect(most <= 2 * 256 && most > 0)
        #expect(try await f.findings("large", "small", "odd") == [])
    }

    @Test("The bell has one element exactly while some batch has jobs")
    func bell() async throws {
        let f = try await QueueFixture()
        func rings() async throws -> Int? { try await f.redis("LLEN", f.keys.bell).int }
        try await f.join("w")
        try await f.open("a")
        try await f.open("b", priority: .low)
        #expect(try await rings() == 0)
        try await f.push("a", sizes: [1])
        try await f.push("b", sizes: [1, 1])
        #expect(try await rings() == 1)
        let first = try await f.claim("w", 1)
        #expect(first.map(\.job.batch) == ["a"])
        #expect(try await rings() == 1)
        _ = try await f.claim("w", 2, count: 2)
        #expect(try await rings() == 0)
        _ = try await f.queue.jobs.release(worker: "w", jobs: [first[0].name], leaving: false)
        #expect(try await rings() == 1)
        _ = try await f.queue.batches.cancel(batch: "a")
        #expect(try await rings() == 0)
        #expect(try await f.findings("a", "b") == [])
    }

    @Test("What is no job goes to the dead-letter list and stops nobody")
    func garbage() async throws {
        let f = try await QueueFixture()
        try await f.open()
        try await f.push(sizes: [2, 2])
        try await f.join("w")
        var cut = QueueFixture.jobs("b", from: 4, sizes: [2])[0].encoded()
        cut.removeLast(3)
        let foreign = QueueFixture.jobs("other", sizes: [1])[0].encoded()
        for payload in [Array("hello".utf8), cut, foreign, Array("prefetch-job 1 b:x:2 0\n".utf8)] {
            try await f.queue.connection.command(["RPUSH", RedisArgument(f.keys.jobs("b")), RedisArgument(payload)])
        }
        let claims = try await f.claim("w", 1, count: 4)
        #expect(claims.map(\.job.name) == ["b:0:2", "b:2:2"])
        #expect(try await f.redis("LLEN", f.keys.dead).int == 4)
        #expect(try await f.redis("HEXISTS", f.keys.owned(by: "w"), "b:4:2@b").int == 0)
        #expect(try await f.redis("EXISTS", f.keys.bell).int == 0)
        #expect(try await f.findings("b") == [])
    }

    @Test("A batch whose hash was deleted by hand neither blocks the others nor keeps the bell ringing")
    func deletedByHand() async throws {
        let f = try await QueueFixture()
        try await f.open("a")
        try await f.push("a", sizes: [1, 1])
        try await f.open("b")
        try await f.push("b", sizes: [1])
        try await f.redis("DEL", f.keys.batch("a"))
        try await f.join("w")
        #expect(try await f.claim("w", 1, count: 5).map(\.job.batch) == ["b"])
        #expect(try await f.redis("EXISTS", f.keys.bell, f.keys.ready(.normal), f.keys.jobs("a")).int == 0)
    }

    /// A Redis of its own: a script that does not end would keep all other tests from theirs.
    private func alone() async throws -> (server: RedisServer, queue: PrefetchQueue) {
        let server = try await RedisServer()
        let connection = RedisConnection(try RedisConfiguration(url: server.url), name: "test")
        let queue = PrefetchQueue(connection: connection, waitLimit: .zero)
        for id in ["a", "b"] {
            _ = try await queue.batches.open(id: id, nonce: id, exactly: true, fields: [])
            let jobs = QueueFixture.jobs(id, sizes: [1, 1]).map { $0.encoded() }
            _ = try await queue.batches.push(batch: id, offset: 0, window: "all", count: 2, jobs: jobs)
        }
        #expect(try await queue.workers.join(worker: "w", lease: 60_000, about: []))
        return (server, queue)
    }

    private func claimed(_ queue: PrefetchQueue, _ sequence: Int, count: Int = 1) async throws -> Set<String> {
        let result = try await queue.jobs.claim(worker: "w", sequence: sequence, count: count, lease: 60_000)
        guard case .claimed(let claims) = result else { return [] }
        return Set(claims.map(\.job.name))
    }

    @Test("A batch without jobs that is in a ready list and does not say so leaves it", arguments: ["none", "0"])
    func leavesTheList(said: String) async throws {
        let (server, queue) = try await alone()
        let hash = RedisArgument(queue.keys.batch("a"))
        try await queue.connection.command(["DEL", RedisArgument(queue.keys.jobs("a"))])
        try await queue.connection.command(
            said == "none" ? ["HDEL", hash, "ready"] : ["HSET", hash, "ready", RedisArgument(said)])
        #expect(try await claimed(queue, 1, count: 4) == ["b:0:1", "b:1:1"])
        #expect(try await claimed(queue, 2).isEmpty)
        let keys = queue.keys
        let left = ["EXISTS", RedisArgument(keys.ready(.normal)), RedisArgument(keys.bell)] as [RedisArgument]
        #expect(try await queue.connection.command(left).int == 0)
        withExtendedLifetime(server) {}
    }

    @Test(
        "Whatever the credit of batches is, there is a turn", arguments: ["-9223372036854775808", "nan", "-1e300", ""])
    func credit(value: String) async throws {
        let (server, queue) = try await alone()
        for id in ["a", "b"] {
            try await queue.connection.command(
                ["HSET", RedisArgument(queue.keys.batch(id)), "credit", RedisArgument(value)])
        }
        #expect(try await claimed(queue, 1, count: 4) == ["a:0:1", "a:1:1", "b:0:1", "b:1:1"])
        #expect(try await claimed(queue, 2).isEmpty)
        withExtendedLifetime(server) {}
    }

    @Test("Where a ready list is of a wrong type, a batch does not say otherwise than the list that comes back")
    func restoredList() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1, 1])
        let (list, saved) = (f.keys.ready(.normal), f.keys.root + ":saved")
        func restore() async throws {
            try await f.redis("DEL", list)
            if try await f.redis("EXISTS", saved).int == 1 { try await f.redis("RENAME", saved, list) }
        }
        try await f.redis("RENAME", list, saved)
        try await f.redis("SET", list, "x")
        await #expect(throws: RedisError.self) { _ = try await f.queue.control.pause(.batch("b")) }
        #expect(try await f.field("ready", of: "b") == "1")
        try await restore()
        _ = try await f.queue.control.pause(.batch("b"))
        #expect(try await f.redis("EXISTS", list).int == 0)
        #expect(try await f.findings("b") == [])
        try await f.redis("SET", list, "x")
        await #expect(throws: RedisError.self) { _ = try await f.queue.control.resume(.batch("b")) }
        #expect(try await f.field("ready", of: "b") == nil)
        try await restore()
        _ = try await f.queue.control.resume(.batch("b"))
        #expect(try await f.findings("b") == [])
    }

    @Test("SPLIT brings a job back in parts that split again at their next death, once")
    func split() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [10, 1])
        try await f.join("w", "v")
        let job = try await f.claim("w", 1)[0].job
        let parts = job.split(into: 8)
        #expect(parts.map(\.entries.count) == [2, 2, 2, 2, 2])
        try await f.queue.jobs.split(worker: "v", claim: job.claim, into: parts)
        #expect(try await f.redis("LLEN", f.keys.jobs("b")).int == 1)
        try await f.queue.jobs.split(worker: "w", claim: job.claim, into: parts)
        try await f.queue.jobs.split(worker: "w", claim: job.claim, into: parts)
        #expect(try await f.findings("b") == [])
        let claims = try await f.claim("v", 1, count: 9)
        #expect(claims.map(\.job.base) == [0, 2, 4, 6, 8, 10])
        #expect(claims.map(\.deliveries) == [2, 2, 2, 2, 2, 0])
        for claim in claims { try await f.finish(claim.job, "v") }
        #expect(try await f.field("state", of: "b") == "done")
        #expect(try await f.findings("b") == [])
    }
}

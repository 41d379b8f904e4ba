import Glibc
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("Following a batch while Redis fails", .timeLimit(.minutes(5)))
struct FollowingFaultTests {
    @Test("A connection that is cut at any reply tells no URL twice and none never")
    func cuts() async throws {
        let server = try await RedisServer()
        let b = try await FollowedBatch(on: try FollowedBatch.queue(server.url), 24)
        let proxy = FaultProxy(target: server.socketPath)
        let other = PrefetchQueue(
            ScriptRunner(
                connection: RedisConnection(try RedisConfiguration(url: proxy.url), name: "follower"),
                keys: b.queue.keys, waitLimit: nil))
        let notices = Locked<[OutcomeTail.Notice]>([])
        var log = b.follow(on: other) { notice in notices.withLock { $0.append(notice) } }
        try await log.poll()
        let faults: [FaultProxy.Fault] = [.cutBeforeRequest, .cutBeforeReply, .cutMidReply, .garble]
        for index in 0..<24 {
            let triggered = proxy.triggered
            proxy.arm(faults[index % 4])
            try await b.settle(index, index % 3 == 0 ? .httpError : .downloaded)
            try await log.read(2 * (index + 1))
            #expect(proxy.triggered == triggered + 1)
        }
        let each = (0..<24).flatMap { b.lines($0 + 1, $0, $0 % 3 == 0 ? .httpError : .downloaded) }
        #expect(try await log.readToEnd() == each + ["didFinish 16, 8", "completion 24, 8"])
    }

    @Test("A Redis that lost its last second is followed on: what was told is not told again, whatever it is now")
    func lostTail() async throws {
        let server = try await RedisServer(appendOnly: true)
        let b = try await FollowedBatch(on: try FollowedBatch.queue(server.url), 10)
        for index in 0..<3 { try await b.settle(index) }
        var log = b.follow()
        try await log.read(6)
        let file = server.directory.path("appendonlydir/appendonly.aof.1.incr.aof")
        var about = stat()
        #expect(stat(file, &about) == 0)
        for index in 3..<7 { try await b.settle(index, .httpError) }
        try await log.read(14)
        await server.kill9()
        #expect(truncate(file, about.st_size) == 0)
        try await server.start()
        #expect(try await b.queue.batches.status(of: b.id)?.counts.finished == 3)
        // Three of the four come again, one of them otherwise; with a new one in between.
        try await b.settle(3, .downloaded)
        try await b.settle(4, .httpError)
        try await b.settle(8)
        try await b.settle(5, .httpError)
        try await log.read(16)
        for index in [6, 7, 9] { try await b.settle(index) }
        let lines = try await log.readToEnd()
        let expected =
            (0..<3).flatMap { b.lines($0 + 1, $0) } + (3..<7).flatMap { b.lines($0 + 1, $0, .httpError) }
            + b.lines(8, 8)
        #expect(lines.prefix(16) == expected[...])
        #expect(lines.filter { $0.hasPrefix("progress") } == (1...10).map { "progress \($0)/10" })
        #expect(Set(lines.filter { $0.hasPrefix("didPrefetch") }.map { $0.split(separator: " ")[1] }).count == 10)
        #expect(lines.suffix(2) == ["didFinish 6, 4", "completion 10, 4"])
        #expect(lines.count == 22)
    }

    @Test("A Redis that is away is said once, waited for, and said to be back")
    func away() async throws {
        let server = try await RedisServer(appendOnly: true)
        let b = try await FollowedBatch(on: try FollowedBatch.queue(server.url), 2)
        let (away, back) = (Latch(), Latch())
        let notices = Locked<[OutcomeTail.Notice]>([])
        let other = PrefetchQueue(
            ScriptRunner(
                connection: RedisConnection(try RedisConfiguration(url: server.url), name: "follower"),
                keys: b.queue.keys, waitLimit: nil))
        var log = b.follow(on: other) { notice in
            notices.withLock { $0.append(notice) }
            if case .redisAway = notice { away.open() } else { back.open() }
        }
        try await b.settle(0)
        try await log.read(2)
        await server.kill9()
        let (folder, batch) = (b, log)
        let rest = Task {
            var log = batch
            return try await log.readToEnd()
        }
        await away.wait()
        try await server.start()
        await back.wait()
        try await folder.settle(1)
        #expect(try await rest.value.suffix(4) == b.lines(2, 1) + ["didFinish 2, 0", "completion 2, 0"])
        #expect(notices.withLock { $0.count } == 2)
    }

    @Test("A Redis that refuses who was let in before is waited for, and not for ever; a newcomer is told at once")
    func refused() async throws {
        let server = try await RedisServer()
        let b = try await FollowedBatch(on: try FollowedBatch.queue(server.url), 1)
        let notices = Locked<[OutcomeTail.Notice]>([])
        let tail = OutcomeTail(
            queue: b.queue, batch: b.id, from: .present, refusalTimeout: .milliseconds(400),
            notice: { notice in notices.withLock { $0.append(notice) } })
        #expect(try await tail.next()?.status.total == 1)
        let admin = RedisConnection(try RedisConfiguration(url: server.url), name: "admin")
        try await admin.command(["CONFIG", "SET", "requirepass", "secret"])
        try await admin.command(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
        let began = ContinuousClock.now
        let late = OutcomeTail(queue: b.queue, batch: b.id, from: .present)
        await #expect { _ = try await late.next() } throws: { ($0 as? PrefetchError)?.kind == .refused }
        #expect(ContinuousClock.now - began < .seconds(5))
        await #expect { while try await tail.next() != nil {} } throws: { ($0 as? PrefetchError)?.kind == .refused }
        #expect(ContinuousClock.now - began >= .milliseconds(300))
        guard case .redisAway(let reason) = notices.withLock({ $0.first }) else {
            Issue.record("nothing was said")
            return
        }
        #expect(reason.contains("requires a password") && notices.withLock { $0.count } == 1)
        // A calling of its own, as of the URLs of a follower.
        var queue = b.queue
        queue.redis.refusalTimeout = .milliseconds(300)
        let second = ContinuousClock.now
        await #expect { _ = try await queue.workers.names() } throws: { ($0 as? RedisError)?.code == .refused }
        #expect(ContinuousClock.now - second >= .milliseconds(100))
    }

    @Test("A batch that stays broken is given up, and one that is whole again is followed on")
    func broken() async throws {
        let server = try await RedisServer()
        let b = try await FollowedBatch(on: try FollowedBatch.queue(server.url), 2)
        func command(_ words: String...) async throws {
            try await b.queue.connection.command(words.map { RedisArgument($0) })
        }
        let key = b.queue.keys.batch(b.id)
        let patient = OutcomeTail(queue: b.queue, batch: b.id, from: .present, brokenTimeout: .seconds(60))
        try await command("HSET", key, "broken", "2 open URLs are in no job")
        #expect(try await patient.next()?.status.broken == "2 open URLs are in no job")
        let tail = OutcomeTail(queue: b.queue, batch: b.id, from: .present, brokenTimeout: .zero)
        await #expect { _ = try await tail.next() } throws: { error in
            guard let error = error as? PrefetchError else { return false }
            return error.kind == .configuration && error.message == "\(b.id) cannot end: 2 open URLs are in no job"
                && error.hint.contains("prefetch-coord rm --force \(b.id)")
        }
        try await command("HDEL", key, "broken")
        #expect(try await patient.next()?.status.broken == nil)
    }

    @Test("With a timeout it gives up as unavailable")
    func waitLimit() async throws {
        let server = try await RedisServer()
        let b = try await FollowedBatch(on: try FollowedBatch.queue(server.url), 1)
        await server.kill9()
        let tail = OutcomeTail(queue: b.queue, batch: b.id, from: .present, waitLimit: .milliseconds(300))
        await #expect { _ = try await tail.next() } throws: { ($0 as? PrefetchError)?.kind == .redisUnavailable }
    }
}

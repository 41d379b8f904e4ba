import Glibc
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

/// Memory that does not grow with the list, by counting what was read and what is held.
@Suite("Feeding a long list", .timeLimit(.minutes(5)))
struct BoundedFeedingTests {
    private let folder = TemporaryDirectory()

    /// A list of so many lines of 100 bytes.
    private func list(_ count: Int) throws -> URLList {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(100 * count)
        let tail = String(repeating: "x", count: 100 - 9 - 8 - 1)
        for number in 0..<count {
            let digits = String(number)
            bytes += Array("http://h/".utf8) + Array(String(repeating: "0", count: 8 - digits.utf8.count).utf8)
            bytes += Array(digits.utf8) + Array(tail.utf8) + [UInt8(ascii: "\n")]
        }
        folder.write(bytes, to: "long.txt")
        return try URLList(path: folder.path("long.txt"))
    }

    /// How far this process has read a file that it has open (proc(5), fdinfo); nil where it has not.
    private func position(in path: String) -> Int? {
        for descriptor in 3..<128 {
            var target = [UInt8](repeating: 0, count: 4096)
            let count = target.withUnsafeMutableBytes {
                readlink("/proc/self/fd/\(descriptor)", $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
            }
            guard count > 0, String(decoding: target.prefix(count), as: UTF8.self) == path else { continue }
            return Int(lseek(Int32(descriptor), 0, SEEK_CUR))
        }
        return nil
    }

    @Test("The reader's buffer grows with the longest line alone, however long the list is")
    func buffer() throws {
        let long = String(repeating: "y", count: 300_000)
        folder.write(Array((0..<3_000).map { $0 % 500 == 7 ? "\(long)\n" : "http://h/\($0)\n" }.joined().utf8), to: "l")
        let sizes = Locked<Set<Int>>([])
        var reader = try LineReader(path: folder.path("l"))
        reader.observe = { bytes, _ in sizes.withLock { _ = $0.insert(bytes.count) } }
        var lines = 0
        while try reader.next() != nil { lines += 1 }
        #expect(lines == 3_000)
        #expect(sizes.withLock { $0 } == [1 << 18, 1 << 19])
    }

    @Test("What waits of a batch takes at most 24 MiB, and a job that is larger goes into an empty list")
    func bytes() async throws {
        let f = try await QueueFixture()
        // What the allocator of Redis makes a MiB of.
        let mebibyte = [UInt8](repeating: 120, count: 1_000_000)
        try await f.open(fields: [("total", "100")])
        func push(_ offset: Int, _ jobs: [[UInt8]], window: String = "auto") async throws -> QueueBatches.PushResult {
            try await f.queue.batches.push(batch: "b", offset: offset, window: window, count: jobs.count, jobs: jobs)
        }
        var count = 0
        while try await push(count, [mebibyte]) == .pushed(count + 1), count < 99 { count += 1 }
        #expect(count == 24)
        // Whoever asks for room is told the same; a window of jobs is bounded in bytes too.
        #expect(try await push(count, []) == .full)
        #expect(try await push(count, [mebibyte], window: "64") == .full)
        // Whatever took a job, and however: what is left counts.
        try await f.redis("RPOP", f.keys.jobs("b"), "2")
        #expect(try await push(count, [mebibyte]) == .pushed(25))
        #expect(try await push(25, [mebibyte], window: "all") == .pushed(26))
        #expect(try await push(26, [mebibyte]) == .full)
        try await f.redis("DEL", f.keys.jobs("b"))
        #expect(try await push(26, [[UInt8](repeating: 120, count: 30 << 20)]) == .pushed(27))
        #expect(try await push(27, [mebibyte]) == .full)
        // Of several batches each has its part.
        for index in 0..<3 { try await f.open("other\(index)") }
        try await f.redis("DEL", f.keys.jobs("b"))
        count = 27
        while try await push(count, [mebibyte]) == .pushed(count + 1), count < 99 { count += 1 }
        #expect(count == 27 + 6)
    }

    @Test("A job of long URLs ends at 256 KiB")
    func longURLs() async throws {
        let f = try await QueueFixture()
        let lines = (0..<200).map {
            "http://h/" + String(repeating: "\($0 * 7_919 + 10_000)", count: 800).prefix(3_991) + "\n"
        }
        folder.write(Array(lines.joined().utf8), to: "long.txt")
        let list = try URLList(path: folder.path("long.txt"))
        try await f.open(fields: [
            ("total", "200"), ("list", list.absolutePath), ("hash", list.hash), ("length", String(list.bytes)),
        ])
        #expect(try await ListFeeder(queue: f.queue, list: list, batch: "b", jobSize: 256).feed() == .sealed)
        let payloads = try await f.redis("LRANGE", f.keys.jobs("b"), "0", "-1").array?.compactMap(\.bytes) ?? []
        #expect(payloads.allSatisfy { $0.count < (1 << 18) + 8_192 })
        #expect(payloads.reduce(0) { $0 + (PrefetchJob($1)?.entries.count ?? 0) } == 200)
        #expect(try await f.findings("b") == [])
    }

    @Test("A Redis with less room than a push takes the list in smaller ones")
    func littleRoom() async throws {
        let server = try await RedisServer()
        let connection = RedisConnection(try RedisConfiguration(url: server.url), name: "feeder")
        let admin = RedisConnection(try RedisConfiguration(url: server.url), name: "admin")
        let queue = PrefetchQueue(connection: connection)
        // Without a common part, so that a push of 64 jobs has a quarter of a MiB.
        let lines = (0..<2_000).map {
            "http://h/\($0 * 7_919)" + String(repeating: "\($0 * 31 % 97)", count: 250) + "\n"
        }
        folder.write(Array(lines.joined().utf8), to: "wide.txt")
        let list = try URLList(path: folder.path("wide.txt"))
        var batch = NewBatch(list: list)
        batch.settings.turn.name = "b"
        #expect(try await batch.open(in: queue).id == "b")
        // All scripts it needs are there, and Lua's heap is as large as a full push makes it; the connection of that has gone.
        let warm = PrefetchQueue(
            connection: RedisConnection(try RedisConfiguration(url: server.url), name: "warm"), name: "warm")
        _ = try await warm.batches.open(id: "b", nonce: "b", exactly: true, fields: [("total", "9999")])
        let jobs = (0..<64).map { _ in [UInt8](repeating: .random(in: 65...90), count: 4_400) }
        for offset in 0..<8 {
            _ = try await warm.batches.push(batch: "b", offset: 64 * offset, window: "all", count: 64, jobs: jobs)
            try await admin.command(["DEL", RedisArgument(warm.keys.jobs("b"))])
        }
        await warm.connection.close()
        try await until { try await admin.command(["CLIENT", "LIST"]).string?.contains("name=warm") != true }
        _ = try await queue.batches.noteFull(batch: "b")
        _ = try await queue.batches.seal(batch: "b", total: 1)
        let used = try await admin.serverFacts().usedMemory
        try await admin.command(["CONFIG", "SET", "maxmemory", RedisArgument(used + 120_000)])
        let isOver = Locked(false)
        // Whatever is there is taken at once.
        let drain = Task {
            var urls = 0
            while !isOver.withLock({ $0 }) || urls < 2_000 {
                let job = try await admin.command(["RPOP", RedisArgument(queue.keys.jobs("b"))]).bytes
                if let job { urls += PrefetchJob(job)?.entries.count ?? 0 } else { await Task.yield() }
                if Task.isCancelled { break }
            }
            return urls
        }
        let feeder = ListFeeder(queue: queue, list: list, batch: "b", window: "all", jobSize: 8)
        let pushes = Locked<[Int]>([])
        let fed = Task { try await feeder.feed(pushed: { count in pushes.withLock { $0.append(count) } }) }
        let watch = Task {
            try? await Task.sleep(for: .seconds(20))
            fed.cancel()
            drain.cancel()
        }
        let end = try? await fed.value
        isOver.withLock { $0 = true }
        #expect(end == .sealed)
        #expect(try await drain.value == 2_000)
        watch.cancel()
        // Each began where the one before had ended, and none was larger than there was room for.
        let steps = zip([0] + pushes.withLock { $0 }, pushes.withLock { $0 }).map { $1 - $0 }
        #expect(steps.reduce(0, +) == 2_000 && steps.allSatisfy { $0 > 0 && $0 < 512 }, "\(steps)")
        #expect(try await queue.batches.status(of: "b")?.isSealed == true)
    }

    @Test("A feeder whose window is full has read what it pushed, one push and one buffer, and no more of the list")
    func readAhead() async throws {
        let f = try await QueueFixture()
        let (lines, window, buffer) = (30_000, 3, 1 << 18)
        let list = try list(lines)
        let path = list.absolutePath
        try await f.open(fields: [("total", String(lines))])
        let farthest = Locked(0)
        let waits = Locked(0)
        let feeder = ListFeeder(queue: f.queue, list: list, batch: "b", window: String(window), jobSize: 16)
        let drain = Task {
            var sequence = 0
            try await f.join("w")
            // Nothing is taken before the feeder has met its full window.
            try await until { waits.withLock({ $0 }) != 0 }
            while try await f.field("state", of: "b") == "running" {
                sequence += 1
                for claim in try await f.claim("w", sequence, count: 4) { try await f.finish(claim.job, "w", .hit) }
                // One push behind a window that was not full yet.
                #expect(try await f.redis("LLEN", f.keys.jobs("b")).int ?? 0 < window + 64)
                await Task.yield()
            }
        }
        let end = try await feeder.feed(
            pushed: { count in
                guard let read = position(in: path) else { return }
                farthest.withLock { $0 = max($0, read - 100 * count) }
            }, waiting: { _ in waits.withLock { $0 += 1 } })
        try await drain.value
        #expect(end == .sealed)
        #expect(waits.withLock { $0 } > 0)
        // What is read and not pushed: the rest of one buffer, since a push has gone with all that was before it.
        #expect((1...buffer).contains(farthest.withLock { $0 }))
        #expect(try await f.field("finished", of: "b") == String(lines))
        #expect(try await f.findings("b") == [])
    }
}

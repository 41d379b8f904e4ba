import Glibc
import Origin
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("Workers whose Redis or whose own thread misbehaves", .timeLimit(.minutes(5)))
struct WorkerFaultTests {
    @Test("Replies later than the timeout, and a connection that says nothing more, cost time and no URL")
    func lateReplies() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { _ in
            OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12), delay: 0.02)
        }
        let queue = try fixture.queue()
        let id = try await fixture.submit((0..<300).map { fixture.origin.url("/\($0).png") }, to: queue, jobSize: 8)
        let proxy = FaultProxy(target: fixture.redis.socketPath)
        let isDone = Latch()
        let workers = try (0..<2).map { _ in
            try fixture.worker(at: proxy.url, timeout: .milliseconds(200)) { $0.lease = 3000 }
        }
        let counts = try await withThrowingTaskGroup(of: PrefetchCounts?.self) { group in
            for worker in workers { group.addTask { try await worker.run() } }
            group.addTask {
                var round = 0
                while !isDone.isOpen {
                    round += 1
                    // 350 ms is after the next command was sent on a new connection: its answer must be its own.
                    proxy.arm(round.isMultiple(of: 2) ? .delayReply(milliseconds: 350) : .swallowReply, every: 9)
                    try? await Task.sleep(for: .milliseconds(300))
                }
                return nil
            }
            var sum = PrefetchCounts()
            for _ in 0..<2 { sum += try await group.next().flatMap { $0 } ?? PrefetchCounts() }
            isDone.open()
            return sum
        }
        #expect(proxy.triggered > 5)
        let status = try #require(try await queue.batches.status(of: id))
        #expect(status.state == .done && status.counts.finished == 300)
        #expect(status.counts[.downloaded] + status.counts[.hit] == 300)
        // What a worker knows of itself may lack a report whose reply was lost; the batch lacks nothing.
        #expect(counts.finished <= 300)
        #expect(try await BatchCheck(queue: queue, batch: id).run() == [])
    }

    @Test("A worker whose download thread hangs sends no heartbeat: others take its jobs, and it finds that out")
    func hangingThread() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { _ in
            OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12), delay: 0.02)
        }
        let queue = try fixture.queue()
        let id = try await fixture.submit((0..<400).map { fixture.origin.url("/\($0).png") }, to: queue, jobSize: 8)
        let (lost, hangs, release) = (Latch(), Latch(), Semaphore())
        let hanging = try fixture.worker {
            ($0.lease, $0.maxConcurrentDownloads) = (1000, 4)
            $0.onEvent = { if case .lost = $0 { lost.open() } }
        }
        // The hanging one still has its locks on the images it was about to fetch.
        let other = try fixture.worker(waitLimit: .milliseconds(500)) {
            ($0.lease, $0.maxConcurrentDownloads) = (1000, 4)
        }
        let runs = Task {
            try await withThrowingTaskGroup(of: PrefetchCounts.self) { group in
                for worker in [hanging, other] { group.addTask { try await worker.run() } }
                return try await group.reduce(into: PrefetchCounts()) { $0 += $1 }
            }
        }
        await fixture.origin.waitForRequests(60)
        let hang = Task { await hanging.context.manager.downloader.hang(hangs, until: release) }
        await hangs.wait()
        let began = ContinuousClock.now
        try await until { try await queue.workers.names().count <= 1 }
        // Its lease, and a check by the other one that comes every third of one; and a busy machine.
        #expect(ContinuousClock.now - began < .seconds(10))
        try await until { try await queue.batches.status(of: id)?.state == .done }
        #expect(!lost.isOpen)
        release.signal()
        await hang.value
        let counts = try await runs.value
        #expect(lost.isOpen)
        #expect(counts.finished == 400)
        #expect(try await queue.batches.status(of: id)?.counts == counts)
        #expect(try await BatchCheck(queue: queue, batch: id).run() == [])
    }

    @Test("A worker that is told to leave while Redis is away leaves")
    func leavesWithoutRedis() async throws {
        let fixture = try await WorkerFixture(appendOnly: true)
        let (joined, away) = (Latch(), Latch())
        let worker = try fixture.worker { configuration in
            configuration.burst = false
            configuration.onEvent = { event in
                switch event {
                case .joined: joined.open()
                case .redisAway: away.open()
                default: break
                }
            }
        }
        let run = Task { try await worker.run() }
        await joined.wait()
        await fixture.redis.kill9()
        await away.wait()
        worker.drain()
        #expect(try await run.value == PrefetchCounts())
        try await fixture.redis.start()
    }

    @Test("An error reply to its registration that nobody foresaw is waited out, and said once")
    func refusedRegistration() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12)) }
        let queue = try fixture.queue()
        let id = try await fixture.submit([fixture.origin.url("/1.png")], to: queue)
        let proxy = FaultProxy(target: fixture.redis.socketPath)
        // Only a registration says which version of the program it is.
        proxy.arm(.answer(containing: "version\r\n", reply: "-ERR upstream failure\r\n"), times: 4)
        let said = Locked<[String]>([])
        let worker = try fixture.worker(at: proxy.url) {
            $0.onEvent = { event in
                switch event {
                case .warning(let text): said.withLock { $0.append(text) }
                case .joined: said.withLock { $0.append("joined") }
                default: break
                }
            }
        }
        #expect(try await worker.run()[.downloaded] == 1)
        #expect(proxy.triggered == 4)
        let lines = said.withLock { $0 }
        #expect(lines.count == 2 && lines.last == "joined", "\(lines)")
        #expect(lines.first?.contains("to register a worker (Redis replied: ERR upstream failure)") == true, "\(lines)")
        #expect(try await queue.batches.status(of: id)?.state == .done)
        #expect(try await BatchCheck(queue: queue, batch: id).run() == [])
    }

    @Test("A worker that is told to leave while its registration is refused leaves")
    func leavesUnregistered() async throws {
        let fixture = try await WorkerFixture()
        let proxy = FaultProxy(target: fixture.redis.socketPath)
        proxy.arm(.answer(containing: "version\r\n", reply: "-ERR upstream failure\r\n"), times: 1 << 30)
        let refused = Latch()
        let worker = try fixture.worker(at: proxy.url) {
            $0.onEvent = { if case .warning = $0 { refused.open() } }
        }
        let run = Task { try await worker.run() }
        await refused.wait()
        worker.drain()
        #expect(try await run.value == PrefetchCounts())
    }

    @Test("A worker whose figures of hosts are refused leaves in order all the same")
    func refusedFigures() async throws {
        let fixture = try await WorkerFixture()
        let body = GeneratedImage.png(seed: 4, width: 12, height: 12)
        fixture.origin.setFallback { _ in OriginResponse(body: body) }
        let queue = try fixture.queue()
        let url = fixture.origin.url("/1.png")
        let id = try await fixture.submit([url], to: queue)
        let proxy = FaultProxy(target: fixture.redis.socketPath)
        let figures = "\(try #require(HostTally.host(of: url))) 1 0 \(body.count)\n"
        proxy.arm(.answer(containing: figures, reply: "-ERR upstream failure\r\n"), times: 1 << 30)
        let worker = try fixture.worker(at: proxy.url)
        #expect(try await worker.run()[.downloaded] == 1)
        #expect(proxy.triggered > 0)
        #expect(try await queue.batches.status(of: id)?.state == .done)
        #expect(try await queue.workers.names() == [])
        #expect(try await queue.keySpace.owners() == [])
        #expect(try await QueueCheck(queue: queue).run() == [])
    }

    @Test("What a person has to mend ends a worker before it is one")
    func mustBeMended() async throws {
        let fixture = try await WorkerFixture()
        try await fixture.queue().connection.command(["CONFIG", "SET", "requirepass", "secret"])
        let worker = try fixture.worker()
        await #expect { try await worker.run() } throws: { ($0 as? PrefetchError)?.kind == .refused }
    }

    @Test("A key of the queue that keeps every worker from registering is put aside by the first that comes")
    func healsAtStart() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        try await queue.connection.command(["SET", RedisArgument(queue.keys.workers), "x"])
        let said = Locked<[String]>([])
        let worker = try fixture.worker {
            $0.onEvent = { event in if case .warning(let text) = event { said.withLock { $0.append(text) } } }
        }
        #expect(try await worker.run() == PrefetchCounts())
        let aside =
            "put aside \(queue.keys.workers) is a string, not a zset: it is \(queue.keys.aside("workers")) for a week"
        #expect(said.withLock { $0 } == ["healed the queue: \(aside)"])
        #expect(try await QueueCheck(queue: queue).run() == [])
    }

    @Test("A batch that is made again under its name is worked on by workers that knew the old one")
    func madeAgain() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { _ in
            OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12), delay: 0.05)
        }
        let queue = try fixture.queue()
        let urls = (0..<200).map { fixture.origin.url("/\($0).png") }
        fixture.folder.write(Array(urls.map { $0 + "\n" }.joined().utf8), to: "urls.txt")
        let list = try URLList(path: fixture.folder.path("urls.txt"))
        var batch = NewBatch(list: list)
        batch.settings.turn.name = "b"
        func make() async throws {
            _ = try await batch.open(in: queue)
            _ = try await ListFeeder(queue: queue, list: list, batch: "b", window: "all", jobSize: 10).feed()
        }
        try await make()
        let worker = try fixture.worker {
            ($0.lease, $0.maxConcurrentDownloads, $0.burst) = (1000, 8, false)
        }
        let run = Task { try await worker.run() }
        await fixture.origin.waitForRequests(30)
        try await queue.connection.command(["FLUSHALL"])
        try await make()
        try await until { try await queue.batches.status(of: "b")?.state == .done }
        worker.drain()
        _ = try await run.value
        #expect(try await queue.batches.status(of: "b")?.counts.skipped == 0)
        #expect(try await BatchCheck(queue: queue, batch: "b").run() == [])
    }
}

/// A counter a thread can block on.
private final class Semaphore: Sendable {
    private let ends: (read: Int32, write: Int32)

    init() {
        var pair: [Int32] = [0, 0]
        precondition(pipe(&pair) == 0)
        ends = (pair[0], pair[1])
    }

    deinit {
        close(ends.read)
        close(ends.write)
    }

    func wait() {
        var byte: UInt8 = 0
        while read(ends.read, &byte, 1) < 0 && errno == EINTR {}
    }

    func signal() {
        var byte: UInt8 = 1
        write(ends.write, &byte, 1)
    }
}

extension ImageDownloader {
    /// Blocks the thread of the downloader, as a call that never returns would: nothing the product offers can do that.
    fileprivate func hang(_ hangs: Latch, until semaphore: Semaphore) {
        hangs.open()
        semaphore.wait()
    }
}

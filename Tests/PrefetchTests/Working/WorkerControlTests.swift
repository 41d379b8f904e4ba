import Origin
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

/// Workers in this process, told what to do while their transfers hang at the origin.
@Suite("Workers that are told to pause, or how many transfers to have", .timeLimit(.minutes(5)))
struct WorkerControlTests {
    private static let image = GeneratedImage.png(seed: 4, width: 12, height: 12)

    /// An origin that answers nothing until it is opened, and everything afterwards.
    private func hangingOrigin(_ fixture: WorkerFixture) -> Locked<Bool> {
        let isOpen = Locked(false)
        fixture.origin.setFallback { _ in
            isOpen.withLock { $0 }
                ? OriginResponse(body: Self.image) : OriginResponse(body: Self.image, fault: .stallBeforeHeader)
        }
        return isOpen
    }

    private func open(_ origin: OriginServer, _ isOpen: Locked<Bool>) {
        isOpen.withLock { $0 = true }
        for path in Set(origin.requests.map(\.path)) { origin.release(path) }
    }

    private func waitingJobs(_ queue: PrefetchQueue, _ id: String) async throws -> Int {
        try await queue.redis.read([["LLEN", RedisArgument(queue.keys.jobs(id))]])[0].int ?? 0
    }

    @Test(
        "Of a paused batch what is in flight ends and counts; the rest goes back without blame and is asked once, after the pause"
    )
    func pausedBatch() async throws {
        let fixture = try await WorkerFixture()
        let isOpen = hangingOrigin(fixture)
        let queue = try fixture.queue()
        let urls = (0..<60).map { fixture.origin.url("/\($0).png") }
        let id = try await fixture.submit(urls, to: queue, jobSize: 10)
        let worker = try fixture.worker(freesSilent: false) { $0.maxConcurrentDownloads = 4 }
        let run = Task { try await worker.run() }
        await fixture.origin.waitForRequests(4)
        #expect(try await queue.control.pause(.batch(id)) == .done(isNew: true))
        // All jobs are on the list again, those included whose first URLs are in flight.
        #expect(try await becomes { try await waitingJobs(queue, id) == 6 })
        #expect(fixture.origin.requestCount() == 4)
        #expect(try await BatchCheck(queue: queue, batch: id).run() == [])
        open(fixture.origin, isOpen)
        #expect(try await becomes { try await queue.batches.status(of: id)?.counts[.downloaded] == 4 })
        #expect(try await queue.batches.status(of: id)?.counts.finished == 4)
        #expect(fixture.origin.requestCount() == 4)
        #expect(try await queue.redis.read([["EXISTS", RedisArgument(queue.keys.tries(id))]])[0].int == 0)
        // A burst worker stays while the batch is unfinished.
        #expect(try await queue.workers.names().count == 1)
        #expect(try await queue.control.resume(.batch(id)) == .done(isNew: true))
        let counts = try await run.value
        #expect(counts[.downloaded] == 60 && counts.finished == 60)
        #expect(fixture.origin.requestCount() == 60)
        #expect(try await queue.batches.status(of: id)?.state == .done)
        #expect(try await BatchCheck(queue: queue, batch: id).run() == [])
    }

    @Test("A batch that is resumed while its transfers still hang goes on with the others at once")
    func resumedEarly() async throws {
        let fixture = try await WorkerFixture()
        let isHeld = Locked<Set<String>>([])
        fixture.origin.setFallback { request in
            let hangs = isHeld.withLock { held in
                if held.count < 2 { held.insert(request.path) }
                return held.contains(request.path)
            }
            return OriginResponse(body: Self.image, fault: hangs ? .stallBeforeHeader : nil)
        }
        let queue = try fixture.queue()
        let urls = (0..<30).map { fixture.origin.url("/\($0).png") }
        let id = try await fixture.submit(urls, to: queue, jobSize: 30)
        let worker = try fixture.worker(freesSilent: false) { $0.maxConcurrentDownloads = 2 }
        let run = Task { try await worker.run() }
        await fixture.origin.waitForRequests(2)
        _ = try await queue.control.pause(.batch(id))
        #expect(try await becomes { try await waitingJobs(queue, id) == 1 })
        // Room for others beside the two that hang.
        #expect(try await queue.control.setConcurrency(8, worker: nil) == 1)
        _ = try await queue.control.resume(.batch(id))
        #expect(try await becomes { try await queue.batches.status(of: id)?.counts.finished == 28 })
        for path in isHeld.withLock({ $0 }) { fixture.origin.release(path) }
        #expect(try await run.value.finished == 30)
        #expect(fixture.origin.requestCount() == 30)
        #expect(try await queue.batches.status(of: id)?.state == .done)
    }

    @Test("A paused queue holds its workers, also one that comes later; cancelling and completing go on")
    func pausedQueue() async throws {
        let fixture = try await WorkerFixture()
        let isOpen = hangingOrigin(fixture)
        let queue = try fixture.queue()
        let one = try await fixture.submit((0..<20).map { fixture.origin.url("/a\($0).png") }, to: queue, jobSize: 2)
        let other = try await fixture.submit((0..<20).map { fixture.origin.url("/b\($0).png") }, to: queue, jobSize: 2)
        let workers = try (0..<2).map { _ in try fixture.worker(freesSilent: false) { $0.maxConcurrentDownloads = 3 } }
        let first = Task { try await workers[0].run() }
        await fixture.origin.waitForRequests(3)
        #expect(try await queue.control.pause(.queue) == .done(isNew: true))
        let second = Task { try await workers[1].run() }
        #expect(try await becomes { try await queue.workers.names().count == 2 })
        #expect(try await becomes { try await waitingJobs(queue, one) + waitingJobs(queue, other) >= 19 })
        open(fixture.origin, isOpen)
        #expect(
            try await becomes {
                try await queue.batches.statuses(of: [one, other]).reduce(0) { $0 + $1.counts.finished } == 3
            })
        #expect(try await queue.batches.cancel(batch: other) == "running")
        #expect(fixture.origin.requestCount() == 3)
        for batch in [one, other] { #expect(try await BatchCheck(queue: queue, batch: batch).run() == []) }
        #expect(try await queue.control.resume(.queue) == .done(isNew: true))
        let (a, b) = (try await first.value, try await second.value)
        #expect(try await queue.batches.status(of: one)?.counts.finished == 20)
        #expect(a.finished + b.finished >= 20)
        #expect(fixture.origin.requests.count { $0.path.hasPrefix("/a") } == 20)
    }

    @Test("What a paused worker has not begun is done by another, and it goes on when it is told to")
    func pausedWorker() async throws {
        let fixture = try await WorkerFixture()
        let isOpen = hangingOrigin(fixture)
        let pauses = Locked<[Bool]>([])
        let queue = try fixture.queue()
        let id = try await fixture.submit((0..<40).map { fixture.origin.url("/\($0).png") }, to: queue, jobSize: 20)
        let paused = try fixture.worker(freesSilent: false) { configuration in
            configuration.maxConcurrentDownloads = 2
            configuration.onEvent = {
                if case .pausedByCommand(let isPaused) = $0 { pauses.withLock { $0.append(isPaused) } }
            }
        }
        let run = Task { try await paused.run() }
        await fixture.origin.waitForRequests(2)
        let name = try #require(try await queue.workers.names().first)
        #expect(try await queue.control.pause(.worker(name)) == .done(isNew: true))
        #expect(try await becomes { try await waitingJobs(queue, id) == 2 })
        #expect(pauses.withLock { $0 } == [true])
        // The other one does all but the two that hang, whose files it waits for.
        isOpen.withLock { $0 = true }
        let other = try fixture.worker()
        let second = Task { try await other.run() }
        #expect(try await becomes { try await queue.batches.status(of: id)?.counts.finished == 38 })
        open(fixture.origin, isOpen)
        let counts = (try await run.value, try await second.value)
        #expect(counts.0.finished + counts.1.finished == 40 && counts.1.finished >= 38)
        #expect(fixture.origin.requestCount() == 40)
        let status = try #require(try await queue.batches.status(of: id))
        #expect(status.state == .done && status.counts[.downloaded] + status.counts[.hit] == 40)
    }

    @Test(
        "A worker that leaves gives back at once what waits for its name or its next try, and finishes what is being transferred",
        arguments: [false, true])
    func leave(isRefusedLater: Bool) async throws {
        let fixture = try await WorkerFixture()
        let isOpen = hangingOrigin(fixture)
        var busy = OriginResponse(status: 503, headers: [("Retry-After", "600")])
        if isRefusedLater { busy.fault = .stallBeforeHeader }
        fixture.origin.route("/busy.png", busy)
        // Its end is no matter of a next try.
        fixture.origin.route("/gone.png", OriginResponse(status: 404, fault: .stallBeforeHeader))
        let names = try OriginResolver { _ in .silence }
        let queue = try fixture.queue()
        let urls =
            (["/one.png", "/busy.png"] + (isRefusedLater ? ["/gone.png"] : [])).map { fixture.origin.url($0) }
            + (0..<3).map { "http://host\($0).test:\(fixture.origin.port)/\($0).png" }
        let id = try await fixture.submit(urls, to: queue, jobSize: 6)
        let worker = try fixture.worker(freesSilent: false) {
            $0.drainTimeout = 600
        } downloads: {
            $0.dnsServers = [names.place]
            $0.hostsFile = "/dev/null"
        }
        let run = Task { try await worker.run() }
        await fixture.origin.waitForRequests(isRefusedLater ? 3 : 2)
        #expect(await becomes { names.counts.queries > 0 })
        worker.drain()
        #expect(try await becomes { try await waitingJobs(queue, id) == 1 })
        #expect(try await queue.redis.read([["EXISTS", RedisArgument(queue.keys.tries(id))]])[0].int == 0)
        open(fixture.origin, isOpen)
        let counts = try await run.value
        let ended = isRefusedLater ? 2 : 1
        #expect(counts[.downloaded] == 1 && counts.finished == ended && counts[.httpError] == ended - 1, "\(counts)")
        #expect(!worker.context.shutdown.drained.isOpen)
        let status = try #require(try await queue.batches.status(of: id))
        #expect(status.counts.finished == ended && status.state == .running)
        #expect(try await BatchCheck(queue: queue, batch: id).run() == [])
    }

    @Test("A worker that was paused and is taken for dead is paused under its new name too")
    func pausedAndLost() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        let worker = try fixture.worker {
            $0.lease = 1_000
            $0.burst = false
        }
        let run = Task { try await worker.run() }
        #expect(try await becomes { try await queue.workers.names().count == 1 })
        let name = try #require(try await queue.workers.names().first)
        _ = try await queue.control.setConcurrency(3, worker: name)
        _ = try await queue.control.pause(.worker(name))
        #expect(await becomes { worker.context.registration.settings.isWorkerPaused })
        _ = try await queue.workers.reap(worker: name)
        #expect(try await becomes { try await queue.workers.names().contains { $0 != name } })
        let report = try #require(try await queue.views.snapshot().workers.values.first).report
        #expect(report.isPaused && report.wantedConcurrency == 3)
        worker.drain()
        _ = try await run.value
    }

    @Test(
        "Transfers follow the number that is set while they run, up and down and back to what the worker was started with"
    )
    func concurrency() async throws {
        let fixture = try await WorkerFixture()
        let isOpen = hangingOrigin(fixture)
        let queue = try fixture.queue()
        let urls = (0..<400).map { fixture.origin.url("/\($0).png") }
        let id = try await fixture.submit(urls, to: queue, jobSize: 5)
        // One that is silent keeps its slot, so that exactly so many hang as there may be.
        let worker = try fixture.worker(freesSilent: false) { $0.maxConcurrentDownloads = 3 }
        let run = Task { try await worker.run() }
        await fixture.origin.waitForRequests(3)
        #expect(try await becomes { try await queue.workerRecords.all()[0].report.maxConcurrentDownloads == 3 })
        #expect(try await queue.control.setConcurrency(70, worker: nil) == 1)
        #expect(await becomes { fixture.origin.currentRequestCount == 70 })
        #expect(worker.context.slots.limit == 280)
        #expect(
            try await becomes { try await queue.workerRecords.all()[0].report.maxConcurrentDownloads == 70 })
        let name = try #require(try await queue.workers.names().first)
        #expect(try await queue.control.setConcurrency(2, worker: name) == 1)
        #expect(await becomes { await worker.concurrency == 2 })
        let before = fixture.origin.requestCount()
        #expect(before == 70)
        for path in fixture.origin.requests.prefix(69).map(\.path) { fixture.origin.release(path) }
        // One of the old ones hangs, and one new one beside it.
        #expect(await becomes { fixture.origin.requestCount() == 71 })
        #expect(try await becomes { try await queue.batches.status(of: id)?.counts.finished == 69 })
        #expect(fixture.origin.currentRequestCount == 2)
        #expect(try await queue.control.setConcurrency(nil, worker: nil) == 1)
        #expect(await becomes { fixture.origin.currentRequestCount == 3 })
        open(fixture.origin, isOpen)
        #expect(try await run.value[.downloaded] == 400)
    }

    @Test("With auto a worker finds its number of transfers; one that is set overrides it until auto is set again")
    func autoConcurrency() async throws {
        let fixture = try await WorkerFixture()
        let isOpen = hangingOrigin(fixture)
        let queue = try fixture.queue()
        _ = try await fixture.submit((0..<400).map { fixture.origin.url("/\($0).png") }, to: queue, jobSize: 5)
        let events = Locked<[PrefetchWorker.Event]>([])
        let worker = try fixture.worker(freesSilent: false) { configuration in
            configuration.maxConcurrentDownloads = .auto
            configuration.onEvent = { event in events.withLock { $0.append(event) } }
        }
        let run = Task { try await worker.run() }
        func report() async throws -> WorkerReport? { try await queue.workerRecords.all().first?.report }
        #expect(await becomes { fixture.origin.currentRequestCount == 16 })
        #expect(try await becomes { try await report()?.concurrencyReason == .growing })
        #expect(try await report()?.maxConcurrentDownloads == 16)
        #expect(try await queue.control.setConcurrency(20, worker: nil) == 1)
        #expect(await becomes { fixture.origin.currentRequestCount == 20 })
        #expect(try await becomes { try await report()?.maxConcurrentDownloads == 20 })
        #expect(try await report()?.concurrencyReason == nil)
        #expect(try await queue.control.setConcurrency(.auto, worker: nil) == 1)
        #expect(try await becomes { try await report()?.concurrencyReason != nil })
        #expect(try await queue.views.snapshot(newest: 0).settings.concurrency == .auto)
        let changes = events.withLock { all in all.filter { if case .concurrency = $0 { true } else { false } } }
        #expect(changes == [.concurrency(20), .concurrency(.auto)])
        open(fixture.origin, isOpen)
        #expect(try await run.value[.downloaded] == 400)
    }
}

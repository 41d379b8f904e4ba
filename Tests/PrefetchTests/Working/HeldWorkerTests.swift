import Glibc
import Origin
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

/// Workers whose disk does not answer.
@Suite("Workers that a disk holds", .timeLimit(.minutes(5)))
struct HeldWorkerTests {
    private func events(
        _ configuration: inout PrefetchWorker.Configuration, into log: Locked<[PrefetchWorker.Event]>
    ) {
        configuration.onEvent = { event in log.withLock { $0.append(event) } }
    }

    @Test(
        "Past three leases of one file call the jobs go back without blame, and others end them; then the worker goes on under its name"
    )
    func held() async throws {
        let fixture = try await WorkerFixture()
        let picture = GeneratedImage.png(seed: 4, width: 12, height: 12)
        // Those of the held one do not end by themselves.
        fixture.origin.setFallback { request in
            OriginResponse(body: picture, delay: request.path.contains("slow") ? 30 : 0.01)
        }
        let queue = try fixture.queue()
        let log = Locked<[PrefetchWorker.Event]>([])
        let worker = try fixture.worker {
            ($0.lease, $0.maxConcurrentDownloads, $0.burst, $0.name) = (1000, 4, false, "held")
            events(&$0, into: log)
        }
        let id = try await fixture.submit(
            (0..<64).map { fixture.origin.url("/slow/\($0).png") }, to: queue, jobSize: 8)
        let run = Task { try await worker.run() }
        await fixture.origin.waitForRequests(4)
        let calls = worker.context.manager.cache.disk.folder.calls
        let call = calls.begin()
        // A lease and more: nobody is told of that.
        try await Task.sleep(for: .milliseconds(1800))
        #expect(try await queue.workers.names() == ["held"])
        #expect(log.withLock { $0 }.count == 1)
        func record() async throws -> WorkerRecord? {
            try await queue.workerRecords.all().first { $0.id == "held" }
        }
        try await until { try await record()?.report.held != nil }
        let held = try #require(try await record())
        #expect(
            held.state == .running && held.report.held?.reason == "disk" && held.report.trouble == WorkerHold.text)
        let now = Int(WallClock.now * 1000)
        #expect(abs(now - (held.report.held?.since ?? 0)) < 30_000)
        try await until { try await queue.held(by: "held") == 0 }
        // The others fetch what it had.
        fixture.origin.setFallback { _ in OriginResponse(body: picture) }
        let other = try fixture.worker(cache: "other") { ($0.lease, $0.name) = (1000, "other") }
        _ = try await other.run()
        let status = try #require(try await queue.batches.status(of: id))
        #expect(status.state == .done && status.counts[.downloaded] == 64)
        #expect(try await queue.deaths(of: id) == 0)
        // It claims nothing, and stays registered.
        let next = try await fixture.submit(
            (0..<8).map { fixture.origin.url("/\($0).png") }, to: queue, jobSize: 8)
        try await Task.sleep(for: .milliseconds(500))
        #expect(try await queue.batches.status(of: next)?.counts.finished == 0)
        calls.end(call)
        try await until { try await queue.batches.status(of: next)?.state == .done }
        try await until { try await record()?.report.held == nil }
        #expect(try await record()?.report.trouble == "")
        // Redis hears of it a moment before the worker does.
        try await until { log.withLock({ $0 }).count >= 3 }
        worker.stop()
        _ = try await run.value
        #expect(log.withLock { $0 } == [.joined("held"), .held(true), .held(false)])
        #expect(try await BatchCheck(queue: queue, batch: id).run() == [])
        #expect(try await BatchCheck(queue: queue, batch: next).run() == [])
    }
}

extension PrefetchQueue {
    /// How many jobs a worker has.
    fileprivate func held(by worker: String) async throws -> Int {
        let reply = try await redis.read([["HKEYS", RedisArgument(keys.owned(by: worker))]])[0].get()
        return (reply.array ?? []).compactMap(\.string).count { !$0.hasPrefix("#") }
    }

    /// How many jobs of a batch count a death.
    fileprivate func deaths(of batch: String) async throws -> Int {
        try await redis.read([["HLEN", RedisArgument(keys.tries(batch))]])[0].get().int ?? -1
    }
}

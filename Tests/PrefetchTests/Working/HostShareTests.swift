import Origin
import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Transfers to one host that all workers share", .timeLimit(.minutes(5)))
struct HostShareTests {
    private let host = "pictures.test"

    private func joined(_ names: [String], _ queue: PrefetchQueue) async throws {
        for name in names { #expect(try await queue.workers.join(worker: name, lease: 15_000, about: [])) }
    }

    private func share(
        _ queue: PrefetchQueue, _ worker: String, running: Int, wanted: Int, limit: Int = 6
    ) async throws -> Int? {
        try await queue.hosts.share(
            [HostShareRequest(host: host, limit: limit, running: running, wanted: wanted)], worker: worker)[0]
    }

    @Test(
        "Who comes first has all; once others want theirs it gives up what is more than its part, and gets back what they leave"
    )
    func parts() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        try await joined(["a", "b"], queue)
        #expect(try await share(queue, "a", running: 0, wanted: 4) == 4)
        #expect(try await share(queue, "a", running: 4, wanted: 6) == 6)
        #expect(try await share(queue, "b", running: 0, wanted: 6) == 0)
        // Told to have three; what it has in flight stays counted until it says that it has ended.
        #expect(try await share(queue, "a", running: 6, wanted: 6) == 3)
        #expect(try await share(queue, "b", running: 0, wanted: 6) == 0)
        #expect(try await share(queue, "a", running: 4, wanted: 6) == 3)
        #expect(try await share(queue, "b", running: 0, wanted: 6) == 2)
        #expect(try await share(queue, "a", running: 3, wanted: 6) == 3)
        #expect(try await share(queue, "b", running: 2, wanted: 6) == 3)
        // A third that wants one alone gets it, and what does not divide is not lost.
        try await joined(["c"], queue)
        #expect(try await share(queue, "c", running: 0, wanted: 1) == 0)
        #expect(try await share(queue, "b", running: 3, wanted: 6) == 2)
        #expect(try await share(queue, "b", running: 2, wanted: 6) == 2)
        #expect(try await share(queue, "c", running: 0, wanted: 1) == 1)
        #expect(try await share(queue, "a", running: 3, wanted: 6) == 3)
        #expect(try await share(queue, "c", running: 0, wanted: 0) == 0)
        #expect(try await share(queue, "b", running: 2, wanted: 6) == 3)
        #expect(try await share(queue, "a", running: 1, wanted: 1) == 1)
        #expect(try await share(queue, "b", running: 3, wanted: 6) == 5)
        #expect(try await share(queue, "a", running: 0, wanted: 0) == 0)
        #expect(try await share(queue, "b", running: 5, wanted: 6) == 6)
    }

    @Test("A limit binds those that have it, and the highest one all of them together")
    func limits() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        try await joined(["a", "b"], queue)
        #expect(try await share(queue, "a", running: 0, wanted: 2, limit: 2) == 2)
        // There are two with the lower limit already: four are left.
        #expect(try await share(queue, "a", running: 0, wanted: 6) == 4)
        #expect(try await share(queue, "b", running: 0, wanted: 2, limit: 2) == 0)
        #expect(try await share(queue, "a", running: 2, wanted: 2, limit: 2) == 1)
        #expect(try await share(queue, "a", running: 1, wanted: 2, limit: 2) == 1)
        // One of each worker.
        #expect(try await share(queue, "b", running: 0, wanted: 2, limit: 2) == 1)
        // Both want more with the higher one: two of the six are taken.
        #expect(try await share(queue, "b", running: 0, wanted: 6) == 0)
        #expect(try await share(queue, "a", running: 4, wanted: 6) == 3)
        #expect(try await share(queue, "a", running: 3, wanted: 6) == 3)
        #expect(try await share(queue, "b", running: 0, wanted: 6) == 1)
        // Without those of the higher limit the lower one is all there is.
        for worker in ["a", "b"] { #expect(try await share(queue, worker, running: 0, wanted: 0) == 0) }
        #expect(try await share(queue, "b", running: 0, wanted: 0, limit: 2) == 0)
        #expect(try await share(queue, "a", running: 1, wanted: 2, limit: 2) == 2)
    }

    @Test("More workers than transfers: some have one and the others none; who is gone leaves its part")
    func crowd() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        let names = (0..<9).map { "w\($0)" }
        try await joined(names, queue)
        var granted: [Int] = []
        for _ in 0..<3 {
            granted = []
            for name in names {
                let before = granted.count < 6 ? 1 : 0
                granted.append(try await share(queue, name, running: before, wanted: 5) ?? -1)
            }
        }
        #expect(granted == [1, 1, 1, 1, 1, 1, 0, 0, 0])
        try await queue.jobs.release(worker: "w0", leaving: true)
        #expect(try await share(queue, "w8", running: 0, wanted: 5) == 1)
    }

    @Test("A key of another type is made anew")
    func poisoned() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        try await joined(["a"], queue)
        try await queue.connection.command(["SET", RedisArgument("\(queue.keys.root):conns:\(host)"), "x"])
        #expect(try await share(queue, "a", running: 0, wanted: 9) == 6)
        try await queue.connection.command(["HSET", RedisArgument("\(queue.keys.root):conns:\(host)"), "b", "many"])
        #expect(try await share(queue, "a", running: 0, wanted: 9) == 6)
    }

    @Test("Three workers have the host's six transfers between them, and no more, to the last URL")
    func workers() async throws {
        let fixture = try await WorkerFixture()
        let body = GeneratedImage.png(seed: 4, width: 12, height: 12)
        fixture.origin.setFallback { _ in OriginResponse(body: body, fault: .stallBeforeHeader) }
        let queue = try fixture.queue()
        let paths = (0..<60).map { "/\($0).png" }
        let id = try await fixture.submit(paths.map { fixture.origin.url($0) }, to: queue, jobSize: 2)
        let workers = try (0..<3).map { _ in try fixture.worker(downloads: { $0.maxConnectionsPerHost = 6 }) }
        let runs = Task {
            await withTaskGroup(of: Void.self) { group in
                for worker in workers { group.addTask { _ = try? await worker.run() } }
            }
        }
        // Each that is answered makes room for one other, whoever has it: six are in flight until fewer are left.
        for count in 0..<paths.count {
            await fixture.origin.waitForRequests(min(6 + count, paths.count))
            let open = fixture.origin.requests.map(\.path).dropFirst(count)
            fixture.origin.release(try #require(open.first))
        }
        await runs.value
        #expect(fixture.origin.maxConcurrentRequestsSeen == 6)
        let status = try #require(try await queue.batches.status(of: id))
        #expect(status.state == .done && status.counts[.downloaded] == 60, "\(status.counts)")
    }
}

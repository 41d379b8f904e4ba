import Origin
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("Hosts that all workers share", .timeLimit(.minutes(5)))
struct HostRateTests {
    /// The requests within the second that begins with each one; the median. What a busy machine receives late crowds a few of these seconds.
    private func usual(_ times: [Double]) -> Int {
        let seconds = times.indices.map { index in times[index...].prefix { $0 < times[index] + 1 }.count }.sorted()
        return seconds.isEmpty ? 0 : seconds[seconds.count / 2]
    }

    @Test("Four workers together ask a host no oftener than its rate, and not much less, also where one dies")
    func rate() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12)) }
        let queue = try fixture.queue()
        let id = try await fixture.submit((0..<120).map { fixture.origin.url("/\($0).png") }, to: queue, jobSize: 4)
        let workers = try (0..<4).map { _ in
            try fixture.worker(configure: { $0.lease = 1000 }, downloads: { $0.hosts.requestsPerSecond = 20 })
        }
        let runs = Task {
            await withTaskGroup(of: Void.self) { group in
                for worker in workers { group.addTask { _ = try? await worker.run() } }
            }
        }
        await fixture.origin.waitForRequests(50)
        workers[0].stop()
        await runs.value
        #expect(try await queue.batches.status(of: id)?.state == .done)
        let times = fixture.origin.requests.map(\.time)
        // What the one that was stopped had begun may have come twice.
        #expect(times.count >= 120)
        #expect(usual(times) <= 21)
        // However late some were received, none came before its turn by more than the first one was late.
        #expect(times.indices.allSatisfy { times[$0] - times[0] > Double($0) / 20 - 1 })
        let mean = Double(times.count - 1) / (times.last! - times.first!)
        #expect(mean <= 20 && mean >= 16, "\(mean)")
    }

    @Test("Reservations are nobody else's, follow each other, and end at the horizon")
    func reservations() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        let wish = HostSlotRequest(host: "a.test", count: 5, rate: 20)
        // Nothing is given within two seconds of the server's start: what it forgot may be in use.
        var first: [HostReservation?] = [nil]
        while first[0] == nil { first = try await queue.hosts.reserve([wish]) }
        var last = try #require(first[0])
        #expect(last.count == 5)
        var total = 5
        for _ in 0..<10 {
            guard let next = try await queue.hosts.reserve([wish])[0] else { break }
            #expect(abs(next.first - (last.first + 5 * last.interval)) < 0.05)
            total += next.count
            last = next
        }
        #expect((19...22).contains(total))
        let other = try await queue.hosts.reserve([wish, HostSlotRequest(host: "b.test", count: 1, rate: 0.1)])
        #expect(other[0] == nil && other[1]?.count == 1)
        // Another rate of the same host has instants of its own.
        #expect(try await queue.hosts.reserve([HostSlotRequest(host: "a.test", count: 9, rate: 40)])[0]?.count == 9)
        #expect(
            try await queue.connection.command(["PTTL", RedisArgument(queue.keys.rate("b.test", interval: 10_256_411))])
                .int ?? 0 > 0)
    }

    @Test("What one worker finds out of a host all hear of, and status names it")
    func trouble() async throws {
        let fixture = try await WorkerFixture()
        let closed = try ClosedPort()
        let queue = try fixture.queue()
        let dead = "http://127.0.0.1:\(closed.port)"
        let first = try await fixture.submit((0..<30).map { "\(dead)/a/\($0).png" }, to: queue)
        let workers = try (0..<2).map { _ in
            try fixture.worker(downloads: {
                $0.hosts.failuresInARow = 4
                $0.hosts.waitLimit = 4
            })
        }
        let run = Task { try await workers[0].run() }
        try await until { try await !queue.hosts.troubled().isEmpty }
        let trouble = try #require(try await queue.hosts.troubled().first)
        #expect(trouble.host == "127.0.0.1:\(closed.port)" && trouble.state == .silent && trouble.failures >= 4)
        #expect(try await queue.views.snapshot().hosts.map(\.host) == [trouble.host])
        let second = Task { try await workers[1].run() }
        let url = "\(dead)/b/0.png"
        let other = try await fixture.submit([url], to: queue)
        _ = try await (run.value, second.value)
        for id in [first, other] {
            let status = try #require(try await queue.batches.status(of: id))
            #expect(status.state == .done && status.counts[.connect] == status.total)
        }
        let detail = try await queue.results.details(of: first, indices: Array(0..<30)).values.map(\.detail)
        #expect(detail.contains { $0.contains("probes of its host failed") }, "\(Set(detail))")
    }
}

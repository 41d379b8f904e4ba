import Origin
import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("A worker with nothing to do", .timeLimit(.minutes(5)))
struct IdleWorkerTests {
    /// Returns when so many clients sleep in a blocking command.
    private func untilBlocked(_ count: Int, _ queue: PrefetchQueue) async throws {
        try await until {
            try await queue.connection.command(["INFO", "clients"]).string?.contains("blocked_clients:\(count)\r\n")
                == true
        }
    }

    @Test("Is woken by a batch: it does not sleep on until its wait for the bell ends by itself")
    func wakes() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        let workers = try (0..<3).map { _ in try fixture.worker { $0.burst = false } }
        try await withThrowingTaskGroup(of: PrefetchCounts.self) { group in
            for worker in workers { group.addTask { try await worker.run() } }
            var options = BatchOptions()
            options.fromCacheOnly = true
            for number in 0..<5 {
                try await untilBlocked(3, queue)
                let id = try await fixture.submit(["http://127.0.0.1:9/\(number)"], to: queue, options: options)
                var status = try #require(try await queue.batches.status(of: id))
                while status.state == .running {
                    try await Task.sleep(for: .milliseconds(2))
                    status = try #require(try await queue.batches.status(of: id))
                }
                #expect(status.counts[.notCached] == 1)
                // The wait for the bell lasts 5 s, and all three had just begun theirs.
                #expect(status.ended - status.created < 4_000)
            }
            // Nobody is left with a job, or spins: all sleep again.
            try await untilBlocked(3, queue)
            for worker in workers { worker.drain() }
            let sum = try await group.reduce(into: PrefetchCounts()) { $0 += $1 }
            #expect(sum[.notCached] == 5 && sum.finished == 5)
        }
    }

    @Test("Several take their share of one short list: nobody has all of it while the others sleep")
    func shares() async throws {
        let fixture = try await WorkerFixture()
        let queue = try fixture.queue()
        // Alone, one worker would need six rounds of this.
        let body = GeneratedImage.png(seed: 4, width: 12, height: 12)
        fixture.origin.setFallback { _ in
            var response = OriginResponse(body: body)
            response.delay = 0.3
            return response
        }
        let workers = try (0..<3).map { _ in
            try fixture.worker {
                $0.burst = false
                $0.maxConcurrentDownloads = 16
            }
        }
        try await withThrowingTaskGroup(of: PrefetchCounts.self) { group in
            for worker in workers { group.addTask { try await worker.run() } }
            try await untilBlocked(3, queue)
            let urls = (0..<96).map { fixture.origin.url("/\($0).png") }
            let id = try await fixture.submit(urls, to: queue)
            try await until { try await queue.batches.status(of: id)?.state != .running }
            for worker in workers { worker.drain() }
            let counts = try await group.reduce(into: [PrefetchCounts]()) { $0.append($1) }
            #expect(counts.reduce(0) { $0 + $1.finished } == 96)
            #expect(counts.allSatisfy { $0.finished >= 16 })
        }
    }
}

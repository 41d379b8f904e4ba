import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

/// A thousand small batches at once, on a Redis of their own whose commands are counted.
@Suite("Many batches", .timeLimit(.minutes(5)))
struct ManyBatchesTests {
    /// How often the server has run a command.
    private func calls(_ command: String, _ queue: PrefetchQueue) async throws -> Int {
        let text = try await queue.connection.command(["INFO", "commandstats"]).string ?? ""
        let head = "cmdstat_\(command):calls="
        let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(head) }
        let number = line?.dropFirst(head.count).prefix { $0 != "," }
        return number.flatMap { Int($0) } ?? 0
    }

    @Test("A thousand batches of 0 to 3 jobs complete once each, and none costs a reading of all the others")
    func thousand() async throws {
        let server = try await RedisServer()
        let queue = PrefetchQueue(connection: RedisConnection(try RedisConfiguration(url: server.url), name: "test"))
        let count = 1_000
        var urls = 0
        for number in 0..<count {
            let id = "b\(number)"
            let sizes = Array(repeating: 2, count: number % 4)
            let priority = ["high", "normal", "low"][number % 3]
            _ = try await queue.batches.open(
                id: id, nonce: id, exactly: true, fields: [("priority", priority), ("details", "10")])
            if !sizes.isEmpty {
                _ = try await queue.batches.push(
                    batch: id, offset: 0, window: "all", count: sizes.reduce(0, +),
                    jobs: QueueFixture.jobs(id, sizes: sizes).map { $0.encoded() })
            }
            _ = try await queue.batches.seal(batch: id, total: sizes.reduce(0, +))
            urls += sizes.reduce(0, +)
        }
        let ready = try await queue.catalog.running().count
        #expect(ready == count * 3 / 4)
        let before = (removals: try await calls("lrem", queue), ends: try await calls("srem", queue))
        var finished = 0
        var sequences = [0, 0, 0]
        for worker in 0..<3 { #expect(try await queue.workers.join(worker: "w\(worker)", lease: 60_000, about: [])) }
        while try await !queue.catalog.running().isEmpty {
            for worker in 0..<3 {
                sequences[worker] += 1
                let result = try await queue.jobs.claim(
                    worker: "w\(worker)", sequence: sequences[worker], count: 8, lease: 60_000)
                guard case .claimed(let claims) = result else { continue }
                let reports = claims.map {
                    QueueFixture.report($0.job, Array(repeating: .hit, count: $0.job.entries.count))
                }
                guard !reports.isEmpty else { continue }
                finished += try await queue.reports.send(reports, worker: "w\(worker)").reduce(0) {
                    $0 + ($1.counted?.count ?? 0)
                }
            }
        }
        #expect(finished == urls)
        let statuses = try await queue.batches.statuses(of: try await queue.catalog.ids())
        #expect(statuses.count == count)
        #expect(statuses.allSatisfy { $0.state == .done && $0.counts.finished == $0.total })
        // One LREM for each batch, in the one list that has it: from its end, so it looks at one element.
        #expect(try await calls("lrem", queue) - before.removals == ready)
        // Each completion takes its batch out of the set of running ones.
        #expect(try await calls("srem", queue) - before.ends == ready)
        #expect(try await queue.connection.command(["EXISTS", RedisArgument(queue.keys.bell)]).int == 0)
        for check in try await BatchCheck.checks(of: (0..<8).map { "b\($0)" }, queue: queue) {
            #expect(try await check.run() == [])
        }
    }
}

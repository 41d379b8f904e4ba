import Foundation
import Origin
import Prefetch
import Redis
import TestSupport
import Testing

@testable import WebImage

@Suite("Workers that die, freeze and wake", .timeLimit(.minutes(5)))
struct ProcessFaultTests {
    @Test("All workers are killed at once: one that comes later does all that is left")
    func killedAll() async throws {
        let bench = try await FaultBench()
        try await bench.submit(300)
        let dead = try await bench.workers(3)
        // One that is killed before it has a name is not missed.
        try await until { try await bench.queue.workers.names().count == 3 }
        try await bench.untilFinished(60)
        for worker in dead { worker.signal(SIGKILL) }
        for worker in dead { #expect(await worker.wait() == .signalled(SIGKILL)) }
        let workers = try await bench.workers(1)
        try await until { try await bench.queue.workers.names().count == 1 }
        let status = try await bench.done(["status"])
        #expect(status.stdout.contains("lost within ten minutes: "), "\(status)")
        try await bench.expectAllThere(300, workers: workers)
        // What was on its way when they died is done again, and nothing else: of each 8 transfers, and the bodies that may wait for their check.
        let most = 300 + 3 * (8 + UncheckedBodies.free)
        #expect((300...most).contains(bench.origin.requestCount()), "\(bench.origin.requestCount())")
    }

    @Test("A worker that was stopped past its lease finds its jobs given to others, and goes on under a new name")
    func stopped() async throws {
        let bench = try await FaultBench()
        try await bench.submit(400)
        let workers = try await bench.workers(2)
        // One that is stopped before it has a name is not lost.
        try await until { try await bench.queue.workers.names().count == 2 }
        try await bench.untilFinished(60)
        workers[0].signal(SIGSTOP)
        try await until { try await bench.queue.workers.names().count == 1 }
        workers[0].signal(SIGCONT)
        try await until {
            workers[0].stderr.contains("was declared lost by the other workers; continuing under a new name")
        }
        try await until { try await bench.queue.workers.names().count == 2 }
        try await bench.expectAllThere(400, workers: workers)
    }

    @Test("A worker that is stopped while it waits for work gets none of it")
    func stoppedIdle() async throws {
        let bench = try await FaultBench()
        let workers = try await bench.workers(2)
        try await until {
            try await bench.redis("INFO", "clients").string?.contains("blocked_clients:2") ?? false
        }
        workers[0].signal(SIGSTOP)
        try await until { try await bench.queue.workers.names().count == 1 }
        try await bench.submit(50)
        try await bench.untilFinished(50)
        workers[0].signal(SIGCONT)
        try await until { try await bench.queue.workers.names().count == 2 }
        try await bench.expectAllThere(50, workers: workers)
    }

    @Test("Clocks of workers that are hours off, and jump, change nothing")
    func clocks() async throws {
        let bench = try await FaultBench()
        let library = try await bench.preloaded("Tests/ShiftedClock/shifted_clock.c")
        try await bench.submit(300)
        bench.folder.write(Array("10800\n".utf8), to: "ahead")
        bench.folder.write(Array("0\n".utf8), to: "jumping")
        var workers: [ChildProcess] = []
        for clock in ["ahead", "jumping"] {
            let environment = ["LD_PRELOAD": library, "CLOCK_SHIFT": bench.folder.path(clock)]
            workers += try await bench.workers(1, environment: environment)
        }
        try await until { try await bench.queue.workers.names().count == 2 }
        for (finished, offset) in [(60, "3600"), (120, "-3600"), (180, "0")] {
            try await bench.untilFinished(finished)
            bench.folder.write(Array("\(offset)\n".utf8), to: "jumping")
            for left in try await bench.queue.workerRecords.all().compactMap(\.leaseLeft) {
                #expect(left <= 2000)
            }
        }
        #expect(try await bench.queue.workers.names().count == 2)
        try await bench.expectAllThere(300, workers: workers)
        // Both had a part in it, and neither was lost.
        let records = try await bench.queue.workerRecords.all()
        #expect(records.count == 2 && records.allSatisfy { $0.report.finished > 0 && $0.state == .left }, "\(records)")
        for worker in workers { #expect(!worker.stderr.contains("declared lost")) }
        // The first one prints the time of its own clock: it was wrong.
        #expect(workers[0].stderr.prefix(2) != workers[1].stderr.prefix(2))
    }

    @Test("Workers whose openat2 a filter refuses fetch, store and verify as ever", arguments: [ENOSYS, EPERM])
    func refusedOpenat2(error: Int32) async throws {
        let bench = try await FaultBench()
        let library = try await bench.preloaded("Tests/RefusedOpenat2/refused_openat2.c")
        let environment = ["LD_PRELOAD": library, "REFUSED_OPENAT2": "\(error)"]
        try await bench.submit(100)
        let workers = try await bench.workers(2, environment: environment)
        try await bench.expectAllThere(100, workers: workers)
    }

    @Test("A worker that was stopped for longer than its timeout does not take that for its servers' silence")
    func stoppedInATransfer() async throws {
        let bench = try await FaultBench(delay: 1.5)
        try await bench.submit(4, "urls", ["--timeout", "2s"])
        let worker = try await bench.workers(1, ["--lease", "30s"])[0]
        try await until { bench.origin.requestCount() == 4 }
        worker.signal(SIGSTOP)
        // What has to pass is the worker's own timeout.
        try await Task.sleep(for: .seconds(2.5))
        worker.signal(SIGCONT)
        try await bench.expectAllThere(4, workers: [worker])
        #expect(bench.origin.requestCount() == 4)
    }
}

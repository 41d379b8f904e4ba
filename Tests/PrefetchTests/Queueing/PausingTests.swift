import Redis
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("Pausing, resuming and moving batches", .timeLimit(.minutes(5)))
struct PausingTests {
    private func rings(_ f: QueueFixture) async throws -> Int? { try await f.redis("LLEN", f.keys.bell).int }

    @Test("Nothing is claimed of a paused batch, whatever comes back or is pushed, until it is resumed")
    func batch() async throws {
        let f = try await QueueFixture()
        try await f.open("a")
        try await f.push("a", sizes: [1, 1])
        try await f.open("b")
        try await f.push("b", sizes: [1, 1])
        try await f.join("w")
        let taken = try await f.claim("w", 1)[0].job
        #expect(taken.batch == "a")
        #expect(try await f.queue.control.pause(.batch("a")) == .done(isNew: true))
        #expect(try await f.queue.control.pause(.batch("a")) == .done(isNew: false))
        #expect(try await f.queue.batches.status(of: "a")?.isPaused == true)
        try await f.queue.jobs.release(worker: "w", jobs: [taken.claimName], leaving: false)
        // Its feeder goes on up to the window.
        #expect(try await f.push("a", offset: 2, sizes: [1], window: "3") == .pushed(3))
        #expect(try await f.push("a", offset: 3, sizes: [1], window: "3") == .full)
        #expect(try await f.findings("a", "b") == [])
        #expect(try await f.claim("w", 2, count: 9).map(\.job.batch) == ["b", "b"])
        #expect(try await f.claim("w", 3, count: 9).isEmpty)
        #expect(try await rings(f) == 0)
        #expect(try await f.queue.catalog.running() == ["a", "b"])
        #expect(try await f.queue.control.resume(.batch("a")) == .done(isNew: true))
        #expect(try await f.queue.control.resume(.batch("a")) == .done(isNew: false))
        #expect(try await f.queue.batches.status(of: "a")?.isPaused == false)
        #expect(try await rings(f) == 1)
        // What came back goes first, and nobody is blamed.
        let claims = try await f.claim("w", 4, count: 9)
        #expect(claims.map(\.job.base) == [0, 1, 2] && claims.map(\.deliveries) == [0, 0, 0])
        #expect(try await f.findings("a", "b") == [])
    }

    @Test("A paused batch that has no jobs is not ready when it is resumed")
    func emptyBatch() async throws {
        let f = try await QueueFixture()
        try await f.open("a")
        #expect(try await f.queue.control.pause(.batch("a")) == .done(isNew: true))
        #expect(try await f.queue.control.resume(.batch("a")) == .done(isNew: true))
        #expect(try await rings(f) == 0)
        #expect(try await f.findings("a") == [])
    }

    @Test("A paused batch is completed, sealed and cancelled like any other; what is over is not paused")
    func endsWhilePaused() async throws {
        let f = try await QueueFixture()
        try await f.join("w")
        try await f.fill("done", sizes: [1])
        let job = try await f.claim("w", 1)[0].job
        _ = try await f.queue.control.pause(.batch("done"))
        try await f.finish(job, "w")
        try await f.open("sealed")
        _ = try await f.queue.control.pause(.batch("sealed"))
        #expect(try await f.queue.batches.seal(batch: "sealed", total: 0) == .pushed(0))
        try await f.fill("cancelled", sizes: [1, 1])
        _ = try await f.queue.control.pause(.batch("cancelled"))
        #expect(try await f.queue.batches.cancel(batch: "cancelled") == "running")
        for (batch, state) in [("done", "done"), ("sealed", "done"), ("cancelled", "cancelled")] {
            let status = try #require(try await f.queue.batches.status(of: batch))
            #expect(status.state.rawValue == state && !status.isPaused && !status.isEffectivelyPaused)
            #expect(try await f.queue.control.pause(.batch(batch)) == .over(state))
            #expect(try await f.queue.control.resume(.batch(batch)) == .over(state))
            #expect(
                try await f.queue.control.change(batch, ["priority": ["high"]]) == .over(state))
        }
        #expect(try await f.queue.control.pause(.batch("none")) == .gone)
        #expect(try await f.queue.control.resume(.batch("none")) == .gone)
        #expect(try await f.queue.control.change("none", ["priority": ["high"]]) == .gone)
        #expect(try await f.redis("EXISTS", f.keys.batch("none")).int == 0)
        #expect(try await f.queue.catalog.running() == [])
        #expect(try await f.findings("done", "sealed", "cancelled") == [])
    }

    @Test("A paused queue gives nothing and its bell is silent; a lost reply is repeated all the same")
    func queue() async throws {
        let f = try await QueueFixture()
        try await f.join("w")
        try await f.open("a")
        try await f.push("a", sizes: [1, 1])
        let claims = try await f.claim("w", 1)
        #expect(try await f.queue.control.pause(.queue) == .done(isNew: true))
        #expect(try await f.queue.control.pause(.queue) == .done(isNew: false))
        #expect(try await f.queue.views.snapshot().settings.isPaused)
        #expect(try await rings(f) == 0)
        #expect(try await f.claim("w", 1) == claims)
        #expect(try await f.claim("w", 2, count: 9).isEmpty)
        try await f.queue.jobs.release(worker: "w", jobs: [claims[0].name], leaving: false)
        try await f.open("b", priority: .high)
        try await f.push("b", sizes: [1])
        _ = try await f.queue.control.pause(.batch("b"))
        _ = try await f.queue.control.resume(.batch("b"))
        _ = try await f.queue.control.change("b", ["priority": ["low"]])
        #expect(try await rings(f) == 0)
        #expect(try await f.claim("w", 2, count: 9).isEmpty)
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.isQueuePaused && !status.isPaused && status.isEffectivelyPaused)
        #expect(try await f.findings("a", "b") == [])
        // Who comes to a paused queue gets nothing either.
        try await f.join("v")
        #expect(try await f.claim("v", 1, count: 9).isEmpty)
        #expect(try await f.queue.control.resume(.queue) == .done(isNew: true))
        #expect(try await rings(f) == 1)
        #expect(try await f.queue.control.resume(.queue) == .done(isNew: false))
        #expect(try await rings(f) == 1)
        #expect(try await f.claim("v", 2, count: 9).count == 3)
        #expect(try await f.queue.control.resume(.queue) == .done(isNew: false))
        #expect(try await rings(f) == 0)
        #expect(try await f.findings("a", "b") == [])
    }

    @Test("A paused worker claims nothing, is told so with its next heartbeat, and others take what there is")
    func worker() async throws {
        let f = try await QueueFixture()
        try await f.join("w", "v")
        try await f.open("a")
        try await f.push("a", sizes: [1, 1, 1])
        let claims = try await f.claim("w", 1)
        #expect(try await f.queue.control.pause(.worker("none")) == .gone)
        #expect(try await f.queue.control.pause(.worker("w")) == .done(isNew: true))
        #expect(try await f.queue.control.pause(.worker("w")) == .done(isNew: false))
        #expect(try await f.claim("w", 1) == claims)
        #expect(try await f.queue.jobs.claim(worker: "w", sequence: 2, count: 1, lease: 60_000) == .paused)
        func beat(_ worker: String) async throws -> QueueWorkers.WorkerSettings? {
            try await f.queue.workers.beat(
                worker: worker, lease: 60_000, trouble: false, batches: [BatchIdentity(id: "a", nonce: "a")], about: [])
        }
        #expect(try await beat("w") == .init(isWorkerPaused: true, workers: 2, batches: [.init(state: "running")]))
        #expect(try await beat("v")?.isWorkerPaused == false)
        #expect(try await f.claim("v", 1, count: 9).count == 2)
        #expect(try await f.queue.workerRecords.all().map(\.report.isPaused) == [false, true])
        #expect(try await f.queue.control.resume(.worker("w")) == .done(isNew: true))
        #expect(try await f.queue.control.resume(.worker("w")) == .done(isNew: false))
        #expect(try await beat("w")?.isWorkerPaused == false)
        #expect(try await f.claim("w", 2).isEmpty)
        #expect(try await f.redis("EXISTS", f.keys.worker("none")).int == 0)
    }

    @Test("A heartbeat brings what is paused and how many transfers there may be, said to one worker or to all")
    func settings() async throws {
        let f = try await QueueFixture()
        try await f.join("w", "v")
        try await f.open("a")
        try await f.open("b")
        _ = try await f.queue.control.pause(.batch("b"))
        _ = try await f.queue.control.pause(.queue)
        func beat(_ worker: String) async throws -> QueueWorkers.WorkerSettings? {
            try await f.queue.workers.beat(
                worker: worker, lease: 60_000, trouble: false,
                batches: ["a", "b", "c"].map { BatchIdentity(id: $0, nonce: $0) }, about: [("in_flight", "1")])
        }
        let batches: [QueueWorkers.WorkerSettings.Batch] = [
            .init(state: "running"), .init(state: "running", isPaused: true), .init(state: "gone"),
        ]
        #expect(try await beat("w") == .init(isQueuePaused: true, workers: 2, batches: batches))
        #expect(try await f.queue.control.setConcurrency(8, worker: nil) == 2)
        #expect(try await f.queue.control.setConcurrency(64, worker: "w") == 1)
        #expect(try await f.queue.control.setConcurrency(64, worker: "none") == 0)
        #expect(
            try await beat("w")
                == .init(isQueuePaused: true, ownConcurrency: 64, queueConcurrency: 8, workers: 2, batches: batches))
        #expect(try await beat("v")?.ownConcurrency == nil)
        #expect(try await f.queue.views.snapshot().settings == .init(isPaused: true, concurrency: 8))
        // One goes back to what all were told; what is said to all afterwards is for all.
        #expect(try await f.queue.control.setConcurrency(nil, worker: "w") == 1)
        #expect(try await beat("w")?.ownConcurrency == nil)
        #expect(try await f.queue.control.setConcurrency(64, worker: "w") == 1)
        #expect(try await f.queue.control.setConcurrency(4, worker: nil) == 2)
        #expect(try await beat("w")?.ownConcurrency == nil)
        #expect(try await beat("w")?.queueConcurrency == 4)
        #expect(try await f.queue.control.setConcurrency(.auto, worker: nil) == 2)
        #expect(try await beat("w")?.queueConcurrency == .auto)
        #expect(try await f.queue.views.snapshot().settings.concurrency == .auto)
        #expect(try await f.queue.control.setConcurrency(nil, worker: nil) == 2)
        #expect(try await beat("w") == .init(isQueuePaused: true, workers: 2, batches: batches))
        #expect(try await f.redis("EXISTS", f.keys.concurrency, f.keys.worker("none")).int == 0)
    }

    @Test("A batch moves between the ready lists at once, is in one of them exactly, and takes its order along")
    func reprioritise() async throws {
        let f = try await QueueFixture()
        try await f.join("w")
        try await f.open("a")
        try await f.push("a", sizes: [1, 1, 1, 1])
        func lists() async throws -> [Int] {
            var counts: [Int] = []
            for priority in PrefetchPriority.allCases {
                counts.append(try await f.redis("LLEN", f.keys.ready(priority)).int ?? -1)
            }
            return counts
        }
        let normal = BatchSettings()
        let low = BatchSettings(words: ["priority": ["low"]])
        #expect(
            try await f.queue.control.change("a", ["priority": ["low"]])
                == .changed(from: normal, to: low))
        #expect(try await lists() == [0, 0, 1])
        #expect(
            try await f.queue.control.change("a", ["priority": ["low"]])
                == .changed(from: low, to: low))
        #expect(try await lists() == [0, 0, 1])
        #expect(try await rings(f) == 1)
        // Two that ask at once.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for priority in [PrefetchPriority.high, .normal, .high, .low, .high] {
                group.addTask { _ = try await f.queue.control.change("a", ["priority": [priority.rawValue]]) }
            }
            try await group.waitForAll()
        }
        #expect(try await lists().reduce(0, +) == 1)
        _ = try await f.queue.control.change("a", ["priority": ["high"], "order": ["lifo"]])
        #expect(try await lists() == [1, 0, 0])
        #expect(try await f.claim("w", 1, count: 2).map(\.job.base) == [3, 2])
        _ = try await f.queue.control.change("a", ["order": ["fifo"]])
        #expect(try await f.claim("w", 2).map(\.job.base) == [0])
        // A paused one moves too, and is ready nowhere.
        _ = try await f.queue.control.pause(.batch("a"))
        _ = try await f.queue.control.change("a", ["priority": ["normal"]])
        #expect(try await lists() == [0, 0, 0])
        _ = try await f.queue.control.resume(.batch("a"))
        #expect(try await lists() == [0, 1, 0])
        #expect(try await f.claim("w", 3, count: 9).count == 1)
        _ = try await f.queue.control.change("a", ["priority": ["low"]])
        #expect(try await lists() == [0, 0, 0])
        #expect(try await rings(f) == 0)
        #expect(try await f.findings("a") == [])
    }

    @Test("A worker is meant by its name or the beginning of it, and who means none is told who is there")
    func resolving() async throws {
        let f = try await QueueFixture()
        func failure(_ name: String) async -> PrefetchError? {
            do throws(PrefetchError) {
                _ = try await f.queue.workerRecords.resolve(name)
                return nil
            } catch {
                return error
            }
        }
        #expect(await failure("x")?.hint == "no worker is there now")
        try await f.join("host:1", "host:12", "other:3", "gone:4")
        try await f.queue.jobs.release(worker: "gone:4", leaving: true)
        #expect(try await f.queue.workerRecords.resolve("host:1") == "host:1")
        #expect(try await f.queue.workerRecords.resolve("o") == "other:3")
        let several = try #require(await failure("host"))
        #expect(several.kind == .notFound && several.hint == "give more of it: host:1, host:12")
        let none = try #require(await failure("x"))
        #expect(none.kind == .notFound && none.message.hasPrefix("there is no worker 'x' in queue"))
        #expect(none.hint == "the workers that are there: host:1, host:12, other:3")
        #expect(await failure("gone:4")?.message.hasPrefix("the worker 'gone:4' has left") == true)
    }
}

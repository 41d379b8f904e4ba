import Glibc
import Origin
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite(.timeLimit(.minutes(5)))
struct PrefetchWorkerTests {
    @Test func everyURLEndsOnceAndTheWorkersCountsAddUpToTheBatchs() async throws {
        let fixture = try await WorkerFixture()
        for index in 0..<60 {
            fixture.origin.route(
                "/\(index).jpg", OriginResponse(body: GeneratedImage.jpeg(seed: UInt64(index), width: 64, height: 48)))
        }
        fixture.origin.route("/page.jpg", OriginResponse(body: Array("<!DOCTYPE html><html></html>".utf8)))
        fixture.origin.setFallback { _ in OriginResponse(status: 404) }
        var urls = (0..<60).map { fixture.origin.url("/\($0).jpg") }
        urls += (0..<10).map { fixture.origin.url("/missing\($0).jpg") }
        urls += [fixture.origin.url("/page.jpg"), "no url at all", "ftp://127.0.0.1/a.jpg", "http://10.1.2.3/a.jpg"]
        // Duplicates count, but are fetched once.
        urls += [fixture.origin.url("/0.jpg"), fixture.origin.url("/missing0.jpg")]
        let queue = try fixture.queue()
        let id = try await fixture.submit(urls, to: queue, jobSize: 7)
        let workers = try (0..<3).map { _ in try fixture.worker() }
        let own = try await withThrowingTaskGroup(of: PrefetchCounts.self) { group in
            for worker in workers { group.addTask { try await worker.run() } }
            return try await group.reduce(into: PrefetchCounts()) { $0 += $1 }
        }
        let status = try #require(try await queue.batches.status(of: id))
        #expect(status.state == .done)
        #expect(status.counts == own)
        #expect(status.counts.finished == urls.count)
        var expected = PrefetchCounts()
        expected[.downloaded] = 60
        expected[.hit] = 1
        expected[.httpError] = 11
        expected[.badImage] = 1
        expected[.invalidURL] = 1
        expected[.refused] = 2
        expected.bytes = (0..<60).reduce(0) {
            $0 + GeneratedImage.jpeg(seed: UInt64($1), width: 64, height: 48).count
        }
        #expect(status.counts == expected)
        let sum = try await queue.results.workerCounts(of: id).values.reduce(into: PrefetchCounts()) { $0 += $1 }
        #expect(sum == expected)
        // One transfer serves every entry of an image. A failure is known to the other workers only with its report, so each of
        // them may have asked for the one failing duplicate once.
        #expect((0..<60).allSatisfy { fixture.origin.requestCount("/\($0).jpg") == 1 })
        #expect((1...3).contains(fixture.origin.requestCount("/missing0.jpg")))
        let failed = try await queue.redis.read([["SMEMBERS", RedisArgument(queue.keys.failed)]])[0].array ?? []
        let listed = (0..<10).map { fixture.origin.url("/missing\($0).jpg") } + [fixture.origin.url("/page.jpg")]
        #expect(Set(failed.compactMap(\.string)) == Set(listed))
        #expect(try await queue.workers.names().isEmpty)
    }

    @Test func aSecondBatchHitsWhatIsThereAndAsksNobodyForListedURLs() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.route("/a.png", OriginResponse(body: GeneratedImage.png(seed: 1, width: 20, height: 20)))
        fixture.origin.setFallback { _ in OriginResponse(status: 404) }
        let urls = [fixture.origin.url("/a.png"), fixture.origin.url("/b.png")]
        let queue = try fixture.queue()
        _ = try await fixture.submit(urls, to: queue)
        _ = try await fixture.worker().run()
        let before = fixture.origin.requestCount()
        let second = try await fixture.submit(urls, to: queue)
        let counts = try await fixture.worker().run()
        #expect(second.hasSuffix(".2") || second.hasPrefix("list-"))
        #expect(counts[.hit] == 1)
        #expect(counts[.blacklisted] == 1)
        #expect(fixture.origin.requestCount() == before)
        var options = BatchOptions()
        options.retryFailed = true
        fixture.origin.route("/b.png", OriginResponse(body: GeneratedImage.png(seed: 2, width: 20, height: 20)))
        _ = try await fixture.submit(urls, to: queue, options: options)
        let third = try await fixture.worker().run()
        #expect(third[.hit] == 1)
        #expect(third[.downloaded] == 1)
        #expect(try await queue.redis.read([["SCARD", RedisArgument(queue.keys.failed)]])[0].int == 0)
    }

    @Test func aJobThatEndedThreeWorkersIsSplitAndItsNeighboursFinish() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12)) }
        let urls = (0..<40).map { fixture.origin.url("/\($0).png") }
        let queue = try fixture.queue()
        let id = try await fixture.submit(urls, to: queue, jobSize: 40)
        _ = try await queue.redis.read([["HSET", RedisArgument(queue.keys.tries(id)), "\(id):0:40", "3"]])
        let counts = try await fixture.worker().run()
        #expect(counts[.downloaded] == 40)
        #expect(try await queue.batches.status(of: id)?.state == .done)
        #expect(try await BatchCheck(queue: queue, batch: id).run() == [])
    }

    @Test func aURLThatEndedThreeWorkersUnderItsMarkIsPoison() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12)) }
        let urls = (0..<3).map { fixture.origin.url("/\($0).png") }
        let queue = try fixture.queue()
        let id = try await fixture.submit(urls, to: queue, jobSize: 1)
        // One is only suspect: it runs alone, and its report clears it. The other has been marked three times.
        let tries = RedisArgument(queue.keys.tries(id))
        _ = try await queue.redis.read([
            ["HSET", tries, "\(id):0:1", "3"], ["HSET", tries, "\(id):1:1", "6", "\(id):1:1!", "3"],
        ])
        let counts = try await fixture.worker().run()
        #expect(counts[.downloaded] == 2)
        #expect(counts[.poison] == 1)
        #expect(fixture.origin.requestCount("/1.png") == 0)
        let detail = try await queue.results.details(of: id, indices: [1])[1]
        #expect(detail?.outcome == .poison)
        #expect(detail?.detail == "its bytes ended 3 workers")
        let listed = try await queue.redis.read([
            ["SISMEMBER", RedisArgument(queue.keys.failed), RedisArgument(urls[1])]
        ])
        #expect(listed[0].int == 1)
    }

    @Test("A suspect URL whose server is silent holds up nobody: it is alone with the decoder, not in the worker")
    func suspectsThatWait() async throws {
        let fixture = try await WorkerFixture()
        let image = OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12))
        fixture.origin.setFallback { _ in image }
        let silent = (0..<3).map { "/silent/\($0).png" }
        for path in silent { fixture.origin.route(path, OriginResponse(body: image.body, fault: .stallBeforeHeader)) }
        let queue = try fixture.queue()
        let suspects = try await fixture.submit(silent.map { fixture.origin.url($0) }, to: queue, jobSize: 1)
        for number in silent.indices {
            let tries = RedisArgument(queue.keys.tries(suspects))
            _ = try await queue.redis.read([["HSET", tries, RedisArgument("\(suspects):\(number):1"), "3"]])
        }
        let run = Task { try await fixture.worker().run() }
        for path in silent { await fixture.origin.waitForRequests(1, to: path) }
        // All three are in flight, and another batch goes past them.
        let other = try await fixture.submit((0..<40).map { fixture.origin.url("/\($0).png") }, to: queue)
        #expect(try await becomes { try await queue.batches.status(of: other)?.state == .done })
        #expect(try await queue.batches.status(of: suspects)?.counts.finished == 0)
        for path in silent { fixture.origin.release(path) }
        let counts = try await run.value
        #expect(counts.finished == 43 && counts.skipped == 0)
        let marks = try await queue.redis.read([["HVALS", RedisArgument(queue.keys.tries(suspects))]])
        #expect(marks[0].array?.isEmpty != false)
    }

    @Test func redisMayBeKilledAndStartedAgainUnderTheWorkers() async throws {
        let fixture = try await WorkerFixture(appendOnly: true)
        fixture.origin.setFallback { _ in
            OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12), delay: 0.02)
        }
        let urls = (0..<1500).map { fixture.origin.url("/\($0).png") }
        let queue = try fixture.queue()
        let id = try await fixture.submit(urls, to: queue)
        let workers = try (0..<2).map { _ in try fixture.worker { $0.lease = 2000 } }
        let runs = Task {
            try await withThrowingTaskGroup(of: PrefetchCounts.self) { group in
                for worker in workers { group.addTask { try await worker.run() } }
                return try await group.reduce(into: PrefetchCounts()) { $0 += $1 }
            }
        }
        await fixture.origin.waitForRequests(300)
        await fixture.redis.kill9()
        try await fixture.redis.restart()
        _ = try await runs.value
        let status = try #require(try await queue.batches.status(of: id))
        #expect(status.state == .done)
        #expect(status.counts.finished == 1500)
        #expect(status.counts.skipped == 0)
        #expect(status.counts[.downloaded] + status.counts[.hit] == 1500)
        #expect(try await BatchCheck(queue: queue, batch: id).run() == [])
    }

    @Test func aCancelledBatchEndsAtOnceAndTheOtherRunsOn() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.route("/slow", OriginResponse(fault: .stallBeforeHeader))
        fixture.origin.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12)) }
        let queue = try fixture.queue()
        let slow = try await fixture.submit([fixture.origin.url("/slow")], to: queue)
        let other = try await fixture.submit((0..<20).map { fixture.origin.url("/\($0).png") }, to: queue)
        let worker = try fixture.worker()
        let run = Task { try await worker.run() }
        await fixture.origin.waitForRequests(1, to: "/slow")
        #expect(try await queue.batches.cancel(batch: slow) == "running")
        let counts = try await run.value
        #expect(counts.finished == 20)
        let status = try #require(try await queue.batches.status(of: slow))
        #expect(status.state == .cancelled)
        #expect(status.counts[.cancelled] == 1)
        #expect(status.counts.finished == 1)
        #expect(try await queue.batches.status(of: other)?.state == .done)
    }

    @Test(.enabled(if: LoopFileSystem.isPermitted, "nothing can be mounted here"))
    func aDiskThatTakesNothingPausesTheWorkerAndBlamesNoURL() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12)) }
        let queue = try fixture.queue()
        let id = try await fixture.submit((0..<10).map { fixture.origin.url("/\($0).png") }, to: queue)
        let paused = Latch()
        let worker = try fixture.worker { configuration in
            configuration.onEvent = { if case .paused = $0 { paused.open() } }
        }
        // A read-only file system where all images have to be: the same local fault as a disk that takes nothing more.
        let images = fixture.folder.path("cache/v1")
        let readOnly: UInt = 1
        #expect(mount("tmpfs", images, "tmpfs", readOnly, nil) == 0)
        defer { umount2(images, Int32(MNT_DETACH)) }
        let run = Task { try await worker.run() }
        await paused.wait()
        #expect(try await queue.batches.status(of: id)?.counts.finished == 0)
        // Busy while it is being checked.
        #expect(await becomes { umount2(images, 0) == 0 })
        let counts = try await run.value
        #expect(counts[.downloaded] == 10)
        #expect(counts.skipped == 0)
        #expect(try await queue.redis.read([["EXISTS", RedisArgument(queue.keys.failed)]])[0].int == 0)
    }
}

import Glibc
import Origin
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("Prefetching in other processes", .timeLimit(.minutes(5)))
struct DistributedImagePrefetcherTests {
    private let fixture: WorkerFixture

    init() async throws {
        fixture = try await WorkerFixture()
        fixture.origin.setFallback { request in
            request.path.hasSuffix(".png")
                ? OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12))
                : OriginResponse(status: 404)
        }
    }

    private func prefetcher(keepsLists: Bool = true) throws -> DistributedImagePrefetcher {
        var configuration = DistributedImagePrefetcher.Configuration()
        configuration.listFolder = keepsLists ? fixture.folder.path : nil
        return try DistributedImagePrefetcher(redisURL: fixture.redis.url, configuration: configuration)
    }

    private func urls(_ good: Int, bad: Int = 0) -> [String] {
        (0..<good).map { fixture.origin.url("/\($0).png") } + (0..<bad).map { fixture.origin.url("/\($0).bad") }
    }

    @Test("A token pauses its batch, changes its priority and tells its failures; settings reach the batch")
    func controls() async throws {
        let prefetcher = try prefetcher()
        let queue = try fixture.queue()
        var settings = PrefetchSettings(slot: "home")
        settings.name = "mine"
        settings.priority = .low
        settings.deadline = .seconds(3600)
        settings.finishAt = .percent(99.5)
        settings.maxFailures = .count(7)
        let token = try await prefetcher.prefetch(["http://h/a", "http://h/b"], settings: settings)
        try await token.waitUntilQueued()
        func status() async throws -> BatchStatus { try #require(try await queue.batches.status(of: token.id)) }
        var now = try await status()
        #expect(token.id == "mine" && now.slot == "home" && now.priority == .low && !now.isPaused)
        #expect(now.finishAt == "99.5%" && now.maxFailures == "7" && now.deadline - now.created == 3_600_000)
        try await token.setPaused(true)
        try await token.setPriority(.high)
        now = try await status()
        #expect(now.isPaused && now.priority == .high)
        try await token.setPaused(false)
        try await prefetcher.pause()
        now = try await status()
        #expect(!now.isPaused && now.isQueuePaused)
        try await prefetcher.resume()
        try await prefetcher.setMaxConcurrentDownloads(8)
        await #expect(throws: PrefetchError.self) { try await prefetcher.setMaxConcurrentDownloads(0) }
        #expect(try await token.failures() == [])
        settings.slot = "no slot"
        await #expect(throws: PrefetchError.self) { try await prefetcher.prefetch([], settings: settings) }
        try await token.cancel()
        #expect(try await token.wait().state == .cancelled)
    }

    @Test("Ten URLs with three bad ones are 22 calls, and the same events, in the order of one process")
    func twentyTwo() async throws {
        let prefetcher = try prefetcher()
        let log = CallLog()
        prefetcher.delegate = log
        let urls = urls(7, bad: 3)
        let token = try await prefetcher.prefetch(urls, progress: log.progress, completed: log.completed)
        #expect(prefetcher.runningTokenCount == 1)
        try await token.waitUntilQueued()
        _ = try await fixture.worker().run()
        let status = try await token.wait()
        #expect(status.state == .done && status.didFinish == (7, 3))
        let lines = log.lines
        #expect(lines.count == 22)
        for k in 1...10 where lines.count == 22 {
            let (progress, ended) = (lines[2 * k - 2], lines[2 * k - 1])
            #expect(progress == "progress \(k)/10")
            #expect(ended.hasPrefix("didPrefetch http") && ended.hasSuffix(" \(k)/10"))
        }
        #expect(lines.suffix(2) == ["didFinish 7, 3", "completion 10, 3"])
        #expect(Set(lines.filter { $0.hasPrefix("did") }.map { $0.split(separator: " ")[1] }).count == 11)
        #expect(!token.isCancelled && prefetcher.runningTokenCount == 0)
        var events: [String] = []
        for try await event in prefetcher.events(ofBatch: token.id) { events.append(FollowerLog.line(event)) }
        #expect(events.count == 22)
        let ended = events.filter { $0.hasPrefix("didPrefetch") }
        #expect(Set(ended.map { $0.split(separator: " ")[1] }) == Set(urls.map { Substring($0) }))
        #expect(ended.count { $0.hasSuffix("httpError") } == 3)
    }

    @Test("What is no line of a list counts all the same, under the text it was given with")
    func awkward() async throws {
        let prefetcher = try prefetcher()
        let odd = ["", "  ", "# no comment", "http://h/a\nhttp://h/b", "not a url", "\u{1}", "\r"]
        let good = fixture.origin.url("/0.png")
        let all = odd + [good, good, " \(good)\t"]
        var events: [String: [PrefetchOutcome?]] = [:]
        let run = Task { [fixture] in
            // Burst workers leave where nothing runs: only once the batch is there.
            let queue = try fixture.queue()
            try await until { try await !queue.catalog.running().isEmpty }
            return try await fixture.worker().run()
        }
        for try await event in try await prefetcher.events(for: all) {
            if case .didPrefetch(let url, _, let total, let outcome, let result) = event {
                #expect(total == 10 && result == nil)
                events[url, default: []].append(outcome)
            }
        }
        _ = try await run.value
        for url in odd { #expect(events[url] == [.invalidURL], "\(url.debugDescription)") }
        #expect(Set(events[good] ?? []) == [.downloaded, .hit] || events[good] == [.hit, .hit])
        #expect(events[" \(good)\t"]?.count == 1)
        #expect(fixture.origin.requestCount("/0.png") == 1)
    }

    @Test("A list from memory goes when the end was told, unless it has a folder to stay in")
    func spool() async throws {
        let folder = TemporaryDirectory()
        setenv("TMPDIR", folder.path, 1)
        defer { unsetenv("TMPDIR") }
        let token = try await prefetcher(keepsLists: false).prefetch(urls(3))
        #expect(folder.contents().count == 1)
        #expect(try await fixture.queue().batches.status(of: token.id)?.listPath == folder.path(folder.contents()[0]))
        _ = try await fixture.worker().run()
        try await token.wait()
        #expect(folder.contents() == [])
        let kept = try await prefetcher().prefetch(urls(2))
        try await kept.cancel()
        try await kept.wait()
        #expect(fixture.folder.contents().contains { $0.hasPrefix("list-") })
    }

    @Test("A cancelled batch has its didFinish and its completion, once, and the open URLs as skipped")
    func cancel() async throws {
        let prefetcher = try prefetcher()
        let log = CallLog()
        prefetcher.delegate = log
        let token = try await prefetcher.prefetch(urls(4), progress: log.progress, completed: log.completed)
        try await token.waitUntilQueued()
        try await token.cancel()
        try await token.cancel()
        #expect(token.isCancelled && prefetcher.runningTokenCount == 0)
        #expect(try await token.wait().state == .cancelled)
        #expect(log.lines.count == 10)
        #expect(log.lines.suffix(2) == ["didFinish 0, 4", "completion 4, 4"])
        let tokens = [try await prefetcher.prefetch(urls(2)), try await prefetcher.prefetch(urls(3))]
        #expect(prefetcher.runningTokenCount == 2)
        try await prefetcher.cancelPrefetching()
        for token in tokens { #expect(try await token.wait().state == .cancelled) }
        #expect(prefetcher.runningTokenCount == 0)
    }

    @Test("A list in a slot ends the one before it, from whatever process, and tells so")
    func slots() async throws {
        let (first, second) = (try prefetcher(), try prefetcher())
        let log = CallLog()
        let old = try await first.prefetch(urls(3), settings: PrefetchSettings(slot: "home"), completed: log.completed)
        let new = try await second.prefetch(urls(2), settings: PrefetchSettings(slot: "home"))
        #expect(old.replaced == nil && new.replaced == old.id)
        #expect(try await old.wait().state == .cancelled)
        #expect(log.lines == ["completion 3, 3"])
        #expect(old.isCancelled && !new.isCancelled)
        _ = try await fixture.worker().run()
        #expect(try await new.wait().counts.finished == 2)
        await #expect { try await first.prefetch([], settings: PrefetchSettings(slot: "no slot")) } throws: { error in
            (error as? PrefetchError)?.kind == .configuration
        }
    }

    @Test("An empty list completes with zeros and no delegate call")
    func empty() async throws {
        let prefetcher = try prefetcher()
        let log = CallLog()
        prefetcher.delegate = log
        try await prefetcher.prefetch([], progress: log.progress, completed: log.completed).wait()
        #expect(log.lines == ["completion 0, 0"])
    }

    @Test("A batch of somebody else is followed, from the start or from now, and goes on when nobody does")
    func others() async throws {
        let queue = try fixture.queue()
        let id = try await fixture.submit(urls(3), to: queue)
        let prefetcher = try prefetcher()
        let log = CallLog()
        let stopped = try await prefetcher.follow(id, completed: { _, _ in Issue.record("nobody follows") })
        stopped.stopFollowing()
        await #expect { try await stopped.wait() } throws: { ($0 as? PrefetchError)?.kind == .stopped }
        let token = try await prefetcher.follow(id, progress: log.progress, completed: log.completed)
        let reader = Task {
            for try await _ in prefetcher.events(ofBatch: id, fromStart: false) { Issue.record("nothing ended yet") }
        }
        reader.cancel()
        try await reader.value
        _ = try await fixture.worker().run()
        try await token.wait()
        #expect(log.lines == (1...3).map { "progress \($0)/3" } + ["completion 3, 0"])
        var late: [String] = []
        for try await event in prefetcher.events(ofBatch: id, fromStart: false) { late.append(FollowerLog.line(event)) }
        #expect(late == ["progress 3/3", "didFinish 3, 0", "completion 3, 0"])
        await #expect { try await prefetcher.follow("none") } throws: { ($0 as? PrefetchError)?.kind == .notFound }
    }

    @Test("A list that changes while it is fed ends the waiting with the reason")
    func changedList() async throws {
        fixture.folder.write(Array("http://h/1\nhttp://h/2\n".utf8), to: "l.txt")
        let prefetcher = try prefetcher()
        // One job of one URL fills the window, so that the second is read after the change.
        let list = try URLList(path: fixture.folder.path("l.txt"))
        var batch = NewBatch(list: list)
        batch.settings.turn.name = "l"
        _ = try await batch.open(in: prefetcher.queue)
        fixture.folder.write(Array("http://h/1\n".utf8), to: "l.txt")
        let feeder = ListFeeder(queue: prefetcher.queue, list: list, batch: "l")
        await #expect { _ = try await feeder.feed() } throws: { ($0 as? PrefetchError)?.kind == .unreadableList }
        let token = BatchToken(id: "l", replaced: nil, queue: prefetcher.queue)
        token.noteQueued(.failure(PrefetchError(.unreadableList, "changed")))
        await #expect { try await token.wait() } throws: { ($0 as? PrefetchError)?.kind == .unreadableList }
        await #expect { try await token.waitUntilQueued() } throws: { ($0 as? PrefetchError)?.message == "changed" }
    }

    @Test("An address, a queue or a server that cannot be are refused")
    func refusals() async throws {
        func kind(_ body: () async throws -> Void) async -> PrefetchError.Kind? {
            do { try await body() } catch { return (error as? PrefetchError)?.kind }
            return nil
        }
        #expect(await kind { _ = try DistributedImagePrefetcher(redisURL: "rediss://h") } == .configuration)
        var configuration = DistributedImagePrefetcher.Configuration()
        configuration.queue = "no queue"
        #expect(
            await kind { _ = try DistributedImagePrefetcher(redisURL: "redis://h", configuration: configuration) }
                == .configuration)
        let evicting = try await RedisServer(options: ["--maxmemory-policy", "allkeys-lru"])
        let prefetcher = try DistributedImagePrefetcher(redisURL: evicting.url)
        #expect(await kind { try await prefetcher.prefetch(["http://h/a"]) } == .configuration)
        let list = TemporaryDirectory()
        configuration.queue = "default"
        configuration.listFolder = list.path("missing")
        let nowhere = try DistributedImagePrefetcher(redisURL: fixture.redis.url, configuration: configuration)
        #expect(await kind { try await nowhere.prefetch(["http://h/a"]) } == .inputOutput)
    }
}

/// What a prefetcher calls, in order.
final class CallLog: ImagePrefetcherDelegate {
    private let state = Locked<[String]>([])

    var lines: [String] { state.withLock { $0 } }

    func write(_ line: String) { state.withLock { $0.append(line) } }
    func progress(_ finished: Int, _ total: Int) { write("progress \(finished)/\(total)") }
    func completed(_ finished: Int, _ skipped: Int) { write("completion \(finished), \(skipped)") }

    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didPrefetch url: String, finishedCount: Int, totalCount: Int
    ) {
        write("didPrefetch \(url) \(finishedCount)/\(totalCount)")
    }

    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didFinishWithTotalCount totalCount: Int, skippedCount: Int
    ) {
        write("didFinish \(totalCount), \(skippedCount)")
    }
}

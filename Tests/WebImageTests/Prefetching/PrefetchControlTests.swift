import Testing
import Threading

@testable import WebImage

/// A loader whose loads end when the test says so.
private final class HeldLoader: ImageLoading {
    private struct State {
        var started: [String] = []
        var waiting: [String: UnsafeContinuation<Void, Never>] = [:]
        var observers: [(count: Int, latch: Latch)] = []
    }

    private let state = Locked(State())

    var started: [String] { state.withLock { $0.started } }

    func waitForStarts(_ count: Int) async {
        let latch = Latch()
        let isThere = state.withLock { state in
            state.observers.append((count, latch))
            return state.started.count >= count
        }
        if isThere { latch.open() }
        await latch.wait()
    }

    /// Returns when the loads of these URLs have started.
    func waitForStarts(of urls: [String]) async {
        while true {
            // Read once: what starts after it is what is waited for.
            let known = started
            if Set(urls).isSubset(of: known) { return }
            await waitForStarts(known.count + 1)
        }
    }

    func end(_ url: String) { state.withLock { $0.waiting.removeValue(forKey: url) }?.resume() }

    func loadImage(with url: String, options: WebImageOptions) async throws(WebImageError) -> LoadedImage {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let reached = state.withLock { state in
                    state.started.append(url)
                    state.waiting[url] = continuation
                    return state.observers.filter { $0.count <= state.started.count }
                }
                for observer in reached { observer.latch.open() }
                if Task.isCancelled { end(url) }
            }
        } onCancel: {
            end(url)
        }
        if Task.isCancelled { throw WebImageError(.cancelled, "cancelled") }
        if url.hasPrefix("bad") {
            var error = WebImageError(.invalidDownloadStatusCode, "404", httpStatus: 404)
            error.tries = 1
            throw error
        }
        if url.hasPrefix("listed") { throw WebImageError(.blackListed, "listed") }
        return LoadedImage(
            url: url, key: url, info: ImageInfo(format: .png, width: 1, height: 1, level: .decode), byteCount: 1)
    }
}

/// What a program can do with lists while they run.
@Suite("Control of a prefetcher's lists", .timeLimit(.minutes(5)))
struct PrefetchControlTests {
    private let loader = HeldLoader()

    private func prefetcher(_ width: Int) -> ImagePrefetcher {
        var configuration = ImagePrefetcher.Configuration()
        configuration.maxConcurrentPrefetchCount = width
        return ImagePrefetcher(manager: loader, configuration: configuration)
    }

    @Test("A list is waited for, and its summary has every URL once")
    func summary() async {
        let token = prefetcher(4).prefetch(["a", "bad1", "listed", "a", "b"])
        await loader.waitForStarts(4)
        #expect(token.requestedCount == 4 && token.finishedCount == 0)
        for url in ["a", "bad1", "listed", "b"] { loader.end(url) }
        await loader.waitForStarts(5)
        loader.end("a")
        let summary = await token.wait()
        #expect(summary.loaded.sorted() == ["a", "a", "b"])
        #expect(summary.failed.map(\.url) == ["bad1"] && summary.failed[0].error.httpStatus == 404)
        #expect(summary.skipped.map(\.url) == ["listed"] && summary.retryURLs == ["bad1", "listed"])
        #expect(summary.finishedCount == 5 && summary.skippedCount == 2 && !summary.isCancelled)
        #expect((token.requestedCount, token.finishedCount, token.skippedCount) == (5, 5, 2))
        // Again, after its end.
        #expect(await token.wait().finishedCount == 5)
    }

    @Test("A paused list starts nothing, and another one goes on; so does a paused prefetcher")
    func pause() async {
        let prefetcher = prefetcher(1)
        let first = prefetcher.prefetch(["a1", "a2"])
        await loader.waitForStarts(1)
        first.isPaused = true
        #expect(first.isPaused)
        let second = prefetcher.prefetch(["b1", "b2"])
        loader.end("a1")
        await loader.waitForStarts(2)
        prefetcher.isPaused = true
        loader.end("b1")
        while second.finishedCount < 1 { await Task.yield() }
        #expect(loader.started == ["a1", "b1"])
        prefetcher.isPaused = false
        await loader.waitForStarts(3)
        loader.end("b2")
        await second.wait()
        #expect(loader.started == ["a1", "b1", "b2"])
        first.isPaused = false
        await loader.waitForStarts(4)
        loader.end("a2")
        #expect(await first.wait().loaded == ["a1", "a2"])
    }

    @Test("A paused list can be cancelled")
    func cancelPaused() async {
        let prefetcher = prefetcher(1)
        let token = prefetcher.prefetch(["a1", "a2"])
        await loader.waitForStarts(1)
        token.isPaused = true
        token.cancel()
        #expect(await token.wait().isCancelled && loader.started == ["a1"])
        // Its slot is free.
        let next = prefetcher.prefetch(["b"])
        await loader.waitForStarts(2)
        loader.end("b")
        #expect(await next.wait().loaded == ["b"])
    }

    @Test("Lists of a higher priority go first, also if it is given later")
    func priority() async {
        let prefetcher = prefetcher(1)
        func list(_ url: String, _ priority: PrefetchPriority) -> PrefetchToken {
            var settings = PrefetchSettings()
            settings.priority = priority
            return prefetcher.prefetch([url], settings: settings)
        }
        let first = list("first", .normal)
        await loader.waitForStarts(1)
        let (low, normal, late) = (list("low", .low), list("normal", .normal), list("late", .low))
        while prefetcher.turns.waitingCount < 3 { await Task.yield() }
        late.priority = .high
        #expect(late.priority == .high)
        loader.end("first")
        await first.wait()
        for (number, url) in ["late", "normal", "low"].enumerated() {
            await loader.waitForStarts(number + 2)
            #expect(loader.started.last == url)
            loader.end(url)
        }
        for token in [low, normal, late] { await token.wait() }
    }

    @Test("The number of loads changes while they run")
    func width() async {
        let prefetcher = prefetcher(1)
        #expect(prefetcher.maxConcurrentPrefetchCount == 1)
        let token = prefetcher.prefetch((0..<6).map { "u\($0)" })
        await loader.waitForStarts(1)
        prefetcher.maxConcurrentPrefetchCount = 3
        loader.end("u0")
        await loader.waitForStarts(4)
        prefetcher.maxConcurrentPrefetchCount = 0
        #expect(prefetcher.maxConcurrentPrefetchCount == 1)
        for number in 1..<6 {
            await loader.waitForStarts(number + 1)
            loader.end("u\(number)")
        }
        #expect(await token.wait().loaded.count == 6)
    }

    @Test("A list in a slot cancels the one before, and the last URL of a list may come first")
    func slotAndOrder() async {
        let prefetcher = prefetcher(1)
        let old = prefetcher.prefetch(["old"], settings: PrefetchSettings(slot: "home"))
        await loader.waitForStarts(1)
        var settings = PrefetchSettings(slot: "home")
        settings.order = .lifo
        let new = prefetcher.prefetch(["a", "b"], settings: settings)
        #expect(await old.wait().isCancelled)
        for (number, url) in ["b", "a"].enumerated() {
            await loader.waitForStarts(number + 2)
            #expect(loader.started.last == url)
            loader.end(url)
        }
        #expect(await new.wait().loaded == ["b", "a"])
    }

    @Test("A list ends early by its deadline, its share and its failures, and is completed")
    func earlyEnds() async throws {
        let prefetcher = prefetcher(2)
        let completed = Locked<[[Int]]>([])
        func list(_ urls: [String], _ change: (inout PrefetchSettings) -> Void) -> PrefetchToken {
            var settings = PrefetchSettings()
            change(&settings)
            return prefetcher.prefetch(
                urls, settings: settings,
                completed: { finished, skipped in completed.withLock { $0.append([finished, skipped]) } })
        }
        let late = list(["a", "b", "c"]) { $0.deadline = .milliseconds(20) }
        let summary = await late.wait()
        #expect(summary.skipped.count == 3 && summary.skipped.allSatisfy { $0.error.code == .cancelled })
        #expect(!summary.isCancelled && completed.withLock { $0 } == [[3, 3]])

        let most = list(["d", "e", "f", "g"]) { $0.finishAt = .percent(50) }
        await loader.waitForStarts(of: ["d", "e"])
        loader.end("d")
        loader.end("e")
        #expect(await most.wait().loaded.sorted() == ["d", "e"])
        #expect(completed.withLock { $0 }.last == [4, 2])

        let failing = list(["bad1", "bad2", "h", "i"]) { $0.maxFailures = .count(1) }
        await loader.waitForStarts(of: ["bad1", "bad2"])
        loader.end("bad1")
        loader.end("bad2")
        let failed = await failing.wait()
        #expect(failed.failed.map(\.url).sorted() == ["bad1", "bad2"] && failed.finishedCount == 4)
    }

    @Test("Settings out of range are named")
    func validation() {
        let changes: [(String, (inout PrefetchSettings) -> Void)] = [
            ("slot", { $0.slot = "no slot" }), ("deadline", { $0.deadline = .zero }),
            ("finishAt", { $0.finishAt = .percent(101) }), ("maxFailures", { $0.maxFailures = .count(-1) }),
        ]
        for (name, change) in changes {
            var settings = PrefetchSettings()
            change(&settings)
            let error = #expect(throws: WebImageError.self) { try settings.validate() }
            #expect(error?.code == .invalidConfiguration && error?.message.contains(name) == true)
        }
        #expect("\(PrefetchSettings.Share.percent(99.9)) \(PrefetchSettings.Share.count(7))" == "99.9% 7")
    }

    @Test("Two lists that run have counts and an end of their own, and low priority unless they are told")
    func ownCounts() async {
        let prefetcher = prefetcher(2)
        let log = EventLog()
        prefetcher.delegate = log
        let first = prefetcher.prefetch(["a"])
        // Two lists given at once may take their turns in either order.
        await loader.waitForStarts(of: ["a"])
        let second = prefetcher.prefetch(["bad", "c"])
        await loader.waitForStarts(of: ["bad"])
        loader.end("a")
        await first.wait()
        loader.end("bad")
        while second.finishedCount < 1 { await Task.yield() }
        await loader.waitForStarts(3)
        loader.end("c")
        await second.wait()
        #expect(
            log.lines == [
                "didPrefetch a 1/1", "didFinish 1, 0", "didPrefetch bad 1/2", "didPrefetch c 2/2", "didFinish 1, 1",
            ])
        #expect(prefetcher.configuration.options == .lowPriority)
    }
}

import Testing
import WebImage

@Suite(.timeLimit(.minutes(5)))
struct ImagePrefetcherTests {
    private static let gone = WebImageError(.invalidDownloadStatusCode, "404", httpStatus: 404)

    private static func urls(_ count: Int, _ prefix: String = "u") -> [String] { (1...count).map { "\(prefix)\($0)" } }

    private static func prefetcher(_ loader: ScriptedLoader, width: Int = 3) -> ImagePrefetcher {
        var configuration = ImagePrefetcher.Configuration()
        configuration.maxConcurrentPrefetchCount = width
        return ImagePrefetcher(manager: loader, configuration: configuration)
    }

    @Test
    func `ten URLs with three bad ones make exactly these 22 calls`() async {
        let loader = ScriptedLoader(errors: ["u2": Self.gone, "u5": Self.gone, "u10": Self.gone])
        let log = EventLog()
        // One at a time, so that the order of the URLs is the list's.
        let prefetcher = Self.prefetcher(loader, width: 1)
        prefetcher.delegate = log
        prefetcher.prefetch(Self.urls(10), progress: log.progress, completed: log.completed)
        await log.wait(for: "completion 10, 3")
        let each = (1...10).flatMap { ["progress \($0)/10", "didPrefetch u\($0) \($0)/10"] }
        #expect(log.lines == each + ["didFinish 7, 3", "completion 10, 3"])
        #expect(await loader.requests == Self.urls(10))
        #expect(prefetcher.delegate === log)
    }

    @Test
    func `the events are the calls, with the image or the reason`() async {
        let prefetcher = Self.prefetcher(ScriptedLoader(errors: ["u2": Self.gone]), width: 1)
        var lines: [String] = []
        for await event in prefetcher.events(for: Self.urls(2)) {
            switch event {
            case .progress(let finished, let total): lines.append("progress \(finished)/\(total)")
            case .didPrefetch(let url, let finished, let total, let outcome, .success(let image)):
                lines.append("didPrefetch \(url) \(finished)/\(total) \(image.outcome)")
                #expect(outcome == image.outcome)
            case .didPrefetch(let url, let finished, let total, let outcome, .failure(let error)):
                lines.append("didPrefetch \(url) \(finished)/\(total) \(error.outcome?.name ?? "none")")
                #expect(outcome == error.outcome)
            case .didPrefetch(_, _, _, _, nil): Issue.record("a load of this process has its result")
            case .didFinish(let total, let skipped): lines.append("didFinish \(total), \(skipped)")
            case .completion(let finished, let skipped): lines.append("completion \(finished), \(skipped)")
            }
        }
        #expect(
            lines == [
                "progress 1/2", "didPrefetch u1 1/2 downloaded", "progress 2/2", "didPrefetch u2 2/2 httpError",
                "didFinish 1, 1", "completion 2, 1",
            ])
    }

    @Test
    func `an empty list completes with zeros at once and no delegate call`() async {
        let log = EventLog()
        let prefetcher = Self.prefetcher(ScriptedLoader())
        prefetcher.delegate = log
        let token = prefetcher.prefetch([], progress: log.progress, completed: log.completed)
        #expect(log.lines == ["completion 0, 0"])
        token.cancel()
        #expect(!token.isCancelled)
        var count = 0
        for await _ in prefetcher.events(for: []) { count += 1 }
        #expect(count == 1)
    }

    @Test
    func `every duplicate counts, a good one is a hit and a bad one takes the first failure`() async {
        let loader = ScriptedLoader(errors: ["bad": Self.gone])
        var outcomes: [String: [PrefetchOutcome?]] = [:]
        var last: PrefetchEvent?
        let urls = ["bad", "good", "bad", "good", "good", "bad"]
        for await event in Self.prefetcher(loader).events(for: urls) {
            last = event
            guard case .didPrefetch(let url, _, let total, let outcome, _) = event else { continue }
            #expect(total == 6)
            outcomes[url, default: []].append(outcome)
        }
        #expect(outcomes == ["good": [.downloaded, .hit, .hit], "bad": [.httpError, .httpError, .httpError]])
        #expect(await loader.requests.count { $0 == "bad" } == 1)
        guard case .completion(6, 3)? = last else { Issue.record("\(String(describing: last))"); return }
    }

    @Test
    func `a duplicate waits for the load of the first`() async {
        let loader = ScriptedLoader(held: ["u1"])
        let log = EventLog()
        Self.prefetcher(loader).prefetch(["u1", "u1", "u2"], progress: log.progress, completed: log.completed)
        await log.wait(for: "progress 1/3")
        // It is u2 that has ended: the request for u1 may be on its way to the loader.
        while await !loader.requests.contains("u1") { await Task.yield() }
        #expect(await loader.requests.sorted() == ["u1", "u2"])
        await loader.release("u1")
        await log.wait(for: "completion 3, 0")
        #expect(await loader.requests.sorted() == ["u1", "u1", "u2"])
    }

    @Test
    func `a cancelled token tells neither its end nor anything else`() async {
        let loader = ScriptedLoader(held: ["u2", "u3"])
        let log = EventLog()
        let prefetcher = Self.prefetcher(loader, width: 2)
        prefetcher.delegate = log
        let token = prefetcher.prefetch(Self.urls(5), progress: log.progress, completed: log.completed)
        await loader.started(3)
        await log.wait(for: "didPrefetch u1 1/5")
        #expect(prefetcher.runningTokenCount == 1)
        token.cancel()
        #expect(token.isCancelled)
        #expect(prefetcher.runningTokenCount == 0)
        // A list of its own passes behind the cancelled one: both loads that were in flight have given back their places.
        let other = EventLog()
        prefetcher.prefetch(["v1"], completed: other.completed)
        await other.wait(for: "completion 1, 0")
        #expect(
            log.lines.filter { !$0.contains("v1") && $0 != "didFinish 1, 0" } == ["progress 1/5", "didPrefetch u1 1/5"])
        #expect(await loader.requests.filter { $0.hasPrefix("u") }.count == 3)
    }

    @Test
    func `cancelPrefetching ends every list`() async {
        let loader = ScriptedLoader(held: ["u1", "v1"])
        let log = EventLog()
        let prefetcher = Self.prefetcher(loader)
        let first = prefetcher.prefetch(["u1"], completed: log.completed)
        let events = prefetcher.events(for: ["v1"])
        await loader.started(2)
        prefetcher.cancelPrefetching()
        var count = 0
        for await _ in events { count += 1 }
        #expect(count == 0)
        #expect(first.isCancelled)
        #expect(prefetcher.runningTokenCount == 0)
        #expect(log.lines.isEmpty)
    }

    @Test
    func `who stops reading the events cancels the list`() async {
        let loader = ScriptedLoader(held: Set(Self.urls(9).dropFirst()))
        let prefetcher = Self.prefetcher(loader)
        let reader = Task {
            for await _ in prefetcher.events(for: Self.urls(9)) { break }
        }
        await reader.value
        let log = EventLog()
        prefetcher.prefetch(["v1"], completed: log.completed)
        await log.wait(for: "completion 1, 0")
        #expect(prefetcher.runningTokenCount == 0)
        #expect(await loader.requests.count <= 5)
    }

    @Test
    func `two lists that overlap both complete, within one limit`() async {
        let loader = ScriptedLoader(errors: ["u7": Self.gone])
        let (first, second) = (EventLog(), EventLog())
        let prefetcher = Self.prefetcher(loader)
        prefetcher.prefetch(Self.urls(40), options: .retryFailed, progress: first.progress, completed: first.completed)
        prefetcher.prefetch(Array(Self.urls(60).dropFirst(20)), progress: second.progress, completed: second.completed)
        await first.wait(for: "completion 40, 1")
        await second.wait(for: "completion 40, 0")
        for log in [first, second] { #expect(log.lines.dropLast() == (1...40).map { "progress \($0)/40" }[...]) }
        #expect(await loader.mostAtOnce <= 3)
        #expect(await loader.options.count { $0 == .retryFailed } == 40)
    }

    @Test
    func `a large list of duplicates and failures does not recurse`() async {
        let loader = ScriptedLoader(errors: ["bad": Self.gone])
        let log = EventLog()
        let urls = (0..<20_000).map { $0 % 2 == 0 ? "bad" : "u\($0 % 100)" }
        Self.prefetcher(loader).prefetch(urls, completed: log.completed)
        await log.wait(for: "completion 20000, 10000")
    }

    @Test
    func `loads that others cancel are skipped, and the list ends`() async {
        let cancelled = WebImageError(.cancelled, "cancelled")
        let log = EventLog()
        let loader = ScriptedLoader(errors: ["u1": cancelled, "u2": cancelled, "u3": cancelled])
        Self.prefetcher(loader).prefetch(Self.urls(3), completed: log.completed)
        await log.wait(for: "completion 3, 3")
    }
}

/// Processes one list and reports events in order. All counting happens in this task.
struct PrefetchRun {
    private struct Ended: Sendable {
        let url: String
        /// nil: its time is over.
        let result: Result<LoadedImage, WebImageError>?
    }

    private let urls: [String]
    private let settings: PrefetchSettings
    private let load: @Sendable (String) async -> Result<LoadedImage, WebImageError>
    private let didEnd: (String, Result<LoadedImage, WebImageError>) -> Void
    private let didClose: () -> Void
    private let report: (PrefetchEvent) -> Void
    private var next = 0
    private(set) var finishedCount = 0
    private(set) var skippedCount = 0
    /// Waiting duplicates of each URL that is being loaded.
    private var duplicates: [ByteText: Int] = [:]
    /// Duplicates whose first has loaded: loading them is a hit.
    private var hits: [String] = []
    private var failures: [ByteText: WebImageError] = [:]

    /// * `didEnd`: receives each URL's result before its events.
    /// * `didClose`: called when no more loads are needed; those that wait have to return.
    /// * `report`: receives each URL's events; the caller reports the end.
    init(
        _ urls: [String], settings: PrefetchSettings = PrefetchSettings(),
        load: @escaping @Sendable (String) async -> Result<LoadedImage, WebImageError>,
        didEnd: @escaping (String, Result<LoadedImage, WebImageError>) -> Void = { _, _ in },
        didClose: @escaping () -> Void = {}, report: @escaping (PrefetchEvent) -> Void
    ) {
        self.urls = settings.order == .fifo ? urls : urls.reversed()
        self.settings = settings
        self.load = load
        self.didEnd = didEnd
        self.didClose = didClose
        self.report = report
    }

    /// Runs the list to its end; the counts are incomplete if the task was cancelled.
    /// * `width`: loads at once, asked whenever one has ended.
    mutating func run(width: () -> Int) async {
        await withTaskGroup(of: Ended.self) { group in
            if let deadline = settings.deadline {
                group.addTask {
                    try? await Task.sleep(for: deadline)
                    return Ended(url: "", result: nil)
                }
            }
            var running = 0
            while !Task.isCancelled, !isOver {
                while running < width(), let url = nextToLoad() {
                    running += 1
                    group.addTask { [load] in Ended(url: url, result: await load(url)) }
                }
                guard running > 0, let ended = await group.next(), let result = ended.result else { break }
                running -= 1
                end(ended.url, result)
            }
            group.cancelAll()
            didClose()
        }
        if !Task.isCancelled { endOpen() }
    }

    /// Whether it ends before all URLs have ended.
    private var isOver: Bool {
        if let least = settings.finishAt, finishedCount >= max(1, least.count(of: urls.count)) { return true }
        if let most = settings.maxFailures, skippedCount > most.count(of: finishedCount) { return true }
        return false
    }

    /// Ends what is open as cancelled: the list has ended early.
    private mutating func endOpen() {
        guard finishedCount < urls.count else { return }
        let error = WebImageError(.cancelled, "the list ended before it")
        var open = hits + duplicates.flatMap { Array(repeating: $0.key.text, count: $0.value + 1) }
        open += urls[next...]
        for url in open { settle(url, .failure(error)) }
    }

    /// The next URL to load. Duplicates are postponed, or get the failure of the first without a request.
    private mutating func nextToLoad() -> String? {
        if let hit = hits.popLast() { return hit }
        while next < urls.count, !Task.isCancelled {
            let url = urls[next]
            next += 1
            if let error = failures[url] {
                settle(url, .failure(error))
            } else if let waiting = duplicates[url] {
                duplicates[url] = waiting + 1
            } else {
                duplicates[url] = 0
                return url
            }
        }
        return nil
    }

    private mutating func end(_ url: String, _ result: Result<LoadedImage, WebImageError>) {
        settle(url, result)
        let waiting = duplicates.removeValue(forKey: url) ?? 0
        switch result {
        case .success:
            hits += Array(repeating: url, count: waiting)
        case .failure(let error):
            failures[url] = error
            for _ in 0..<waiting { settle(url, result) }
        }
    }

    /// SDWebImagePrefetcher's order: finished, progress, skipped, didPrefetch.
    private mutating func settle(_ url: String, _ result: Result<LoadedImage, WebImageError>) {
        finishedCount += 1
        didEnd(url, result)
        report(.progress(finishedCount: finishedCount, totalCount: urls.count))
        let outcome: PrefetchOutcome?
        switch result {
        case .success(let image): outcome = image.outcome
        case .failure(let error):
            skippedCount += 1
            outcome = error.outcome
        }
        report(
            .didPrefetch(
                url: url, finishedCount: finishedCount, totalCount: urls.count, outcome: outcome, result: result))
    }
}

/// Processes one list and reports events in order. All counting happens in this task.
struct PrefetchRun {
    private struct Ended: Sendable {
        let url: String
        let result: Result<LoadedImage, WebImageError>
    }

    private let urls: [String]
    private let load: @Sendable (String) async -> Result<LoadedImage, WebImageError>
    private let report: (PrefetchEvent) -> Void
    private var next = 0
    private var finishedCount = 0
    private var skippedCount = 0
    private var duplicates: [String: Int] = [:]
    /// Duplicates whose first has loaded: loading them is a hit.
    private var hits: [String] = []
    private var failures: [String: WebImageError] = [:]

    /// `report` receives each URL's events; the caller reports the end.
    init(
        _ urls: [String], load: @escaping @Sendable (String) async -> Result<LoadedImage, WebImageError>,
        report: @escaping (PrefetchEvent) -> Void
    ) {
        self.urls = urls
        self.load = load
        self.report = report
    }

    /// - Returns: the counts; incomplete if the task was cancelled.
    mutating func run(width: Int) async -> (finishedCount: Int, skippedCount: Int) {
        await withTaskGroup(of: Ended.self) { group in
            var running = 0
            while !Task.isCancelled {
                while running < width, let url = nextToLoad() {
                    running += 1
                    group.addTask { [load] in Ended(url: url, result: await load(url)) }
                }
                guard let ended = await group.next() else { break }
                running -= 1
                end(ended)
            }
        }
        return (finishedCount, skippedCount)
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

    private mutating func end(_ ended: Ended) {
        settle(ended.url, ended.result)
        let waiting = duplicates.removeValue(forKey: ended.url) ?? 0
        switch ended.result {
        case .success:
            hits += Array(repeating: ended.url, count: waiting)
        case .failure(let error):
            failures[ended.url] = error
            for _ in 0..<waiting { settle(ended.url, ended.result) }
        }
    }

    /// SDWebImagePrefetcher's order: finished, progress, skipped, didPrefetch.
    private mutating func settle(_ url: String, _ result: Result<LoadedImage, WebImageError>) {
        finishedCount += 1
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

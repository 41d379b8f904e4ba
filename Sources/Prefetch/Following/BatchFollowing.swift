package import WebImage

/// Follows one batch to its end and says what happens to it in SDWebImagePrefetcher's order: for each URL that ends `progress` and
/// `didPrefetch`, then `didFinish` and `completion`, once. Whoever follows, and whenever: the k-th URL has the count k.
///
/// Its counts are those of what it told. They are the batch's, but where Redis was started again without its last second and a URL ended
/// otherwise the second time: the first told stands. One caller at a time.
package actor BatchFollowing {
    /// Where the URLs of indices come from.
    enum Source {
        case notLooked
        case given([String])
        case list(ListCursor)
        case lists(SegmentedList)
        case packed(PackedURLs)
        /// Only details of skipped URLs are there.
        case none(PrefetchError)
    }

    let queue: PrefetchQueue
    let listPath: String?
    var source = Source.notLooked
    private let tail: OutcomeTail
    private var saysPresent: Bool
    /// The batch as it was read last.
    package private(set) var status: BatchStatus?
    /// Whether the batch is over and everything was told.
    package private(set) var hasEnded = false

    /// * `urls`: the URLs of the batch, where they are at hand.
    /// * `listPath`: where the list is now, if not where it was read.
    /// * `patience`: how long a Redis that is away is waited for; nil = until the task is cancelled.
    package init(
        queue: PrefetchQueue, batch: String, from start: OutcomeTail.Start, urls: [String]? = nil,
        listPath: String? = nil, patience: Duration? = nil,
        notice: @escaping @Sendable (OutcomeTail.Notice) -> Void = { _ in }
    ) {
        var patient = PrefetchQueue(
            ScriptRunner(connection: queue.connection, keys: queue.keys, patience: patience))
        // It is asked after the tail has read something: whoever refuses us then has let us in before.
        patient.redis.forbearance = OutcomeTail.forbearance
        self.queue = patient
        self.listPath = listPath
        if let urls { source = .given(urls) }
        saysPresent = start == .present
        tail = OutcomeTail(queue: queue, batch: batch, from: start, patience: patience, notice: notice)
    }

    /// What has happened since the last call, perhaps nothing; nil after the end, and where the task is cancelled. Who begins in the
    /// middle gets one `progress` with the counts of now first.
    /// - Throws: `notFound` where Redis does not know the batch; `unreadableList` where a URL is asked for that only the list has.
    package func next() async throws(PrefetchError) -> [PrefetchEvent]? {
        guard let news = try await tail.next() else { return nil }
        status = news.status
        let total = news.status.total
        var finished = news.finished - news.settled.count
        // SDWebImage 3 calls nobody any more once a prefetch is cancelled.
        let isSilent = news.status.state == .cancelled && !news.status.options.completesWhenCancelled
        let told = isSilent ? news.settled.filter { $0.outcome != .cancelled } : news.settled
        var events: [PrefetchEvent] = []
        if saysPresent, finished > 0, !isSilent { events.append(.progress(finishedCount: finished, totalCount: total)) }
        saysPresent = false
        events.reserveCapacity(events.count + 2 * told.count + 2)
        let urls = try await urls(of: told, in: news.status)
        for (settled, url) in zip(told, urls) {
            finished += 1
            events.append(.progress(finishedCount: finished, totalCount: total))
            events.append(
                .didPrefetch(url: url, finishedCount: finished, totalCount: total, outcome: settled.outcome))
        }
        hasEnded = news.isEnd
        if news.isEnd && !isSilent {
            let skipped = news.skipped
            if total > 0 { events.append(.didFinish(totalCount: total - skipped, skippedCount: skipped)) }
            events.append(.completion(finishedCount: finished, skippedCount: skipped))
        }
        return events
    }
}

internal import Redis
package import WebImage

/// Follows one batch to its end and returns its events in SDWebImagePrefetcher's order: for each URL that ends `progress` and
/// `didPrefetch`, then `didFinish` and `completion`, once. For every follower the k-th URL has the count k.
///
/// It counts the events it has returned. These are the batch's counts, except if Redis restarted without its last second and a URL then
/// ended differently: the first event stands. One caller at a time.
package actor BatchEventReader {
    /// Where URLs of indices come from.
    private enum Source {
        case unknown
        case given([String])
        case list(EntryReader)
        case packed(PackedURLs)
        case none(PrefetchError)
    }

    private let queue: PrefetchQueue
    private var source = Source.unknown
    private let tail: OutcomeTail
    private var saysPresent: Bool
    package private(set) var status: BatchStatus?
    /// Whether the batch is over and all its events were returned.
    package private(set) var hasEnded = false

    /// * `urls`: the URLs of the batch, if known.
    /// * `waitLimit`: timeout while Redis is unreachable; nil = until the task is cancelled.
    package init(
        queue: PrefetchQueue, batch: String, from start: OutcomeTail.Start, urls: [String]? = nil,
        waitLimit: Duration? = nil,
        notice: @escaping @Sendable (OutcomeTail.Notice) -> Void = { _ in }
    ) {
        var waitingQueue = PrefetchQueue(
            ScriptRunner(connection: queue.connection, keys: queue.keys, waitLimit: waitLimit))
        // Used only after the tail has read something, so a refusal means that access was lost.
        waitingQueue.redis.refusalTimeout = OutcomeTail.refusalTimeout
        self.queue = waitingQueue
        if let urls { source = .given(urls) }
        saysPresent = start == .present
        tail = OutcomeTail(queue: queue, batch: batch, from: start, waitLimit: waitLimit, notice: notice)
    }

    /// Events since the last call, possibly none; nil after the end, and if the task is cancelled. A follower that starts in the middle
    /// first gets one `progress` with the current counts.
    /// - Throws: `notFound` if Redis does not have the batch; `unreadableList` if a URL is needed that only the list has.
    package func next() async throws(PrefetchError) -> [PrefetchEvent]? {
        guard let news = try await tail.next() else { return nil }
        status = news.status
        let total = news.status.total
        var finished = news.finished - news.settled.count
        // SDWebImage makes no more calls once a prefetch is cancelled.
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

// MARK: - URLs of indices

extension BatchEventReader {
    /// * `settled`: in ascending order.
    private func urls(of settled: [SettledURL], in status: BatchStatus) async throws(PrefetchError) -> [String] {
        guard !settled.isEmpty else { return [] }
        if case .unknown = source { source = try await findURLSource(of: status) }
        var urls: [String] = []
        urls.reserveCapacity(settled.count)
        switch source {
        case .given(let given):
            for item in settled where given.indices.contains(item.index) { urls.append(given[item.index]) }
        case .list(let reader):
            for item in settled { urls.append(try reader.entry(at: item.index).url) }
        case .packed(let packed):
            for item in settled { packed[item.index].map { urls.append($0) } }
        case .none(let reason): urls = try await detailedURLs(of: settled, in: status, otherwise: reason)
        case .unknown: break
        }
        guard urls.count == settled.count else {
            throw PrefetchError(
                .software, "\(status.id) has more URLs than its list", hint: "check it: prefetch-coord fsck")
        }
        return urls
    }

    private func findURLSource(of status: BatchStatus) async throws(PrefetchError) -> Source {
        do throws(PrefetchError) {
            return status.retryOf == nil
                ? .list(try await reader(of: status)) : try await retrySource(status)
        } catch {
            guard error.kind == .unreadableList || error.kind == .notFound else { throw error }
            return .none(error)
        }
    }

    private func reader(of status: BatchStatus) async throws(PrefetchError) -> EntryReader {
        let found = try await ListPlace.find(status, queue: queue)
        return try EntryReader(path: found.path, pieces: found.pieces)
    }

    /// The entries of a retry are skipped lines of another batch, which may be a retry itself: they are kept in memory.
    private func retrySource(_ status: BatchStatus) async throws(PrefetchError) -> Source {
        let entries = try await BatchEntries(of: status, queue: queue)
        var packed = PackedURLs()
        try await entries.forEach { entry async throws(PrefetchError) in
            packed.append(entry.url)
            return true
        }
        return .packed(packed)
    }

    /// Without the list: URLs from the details of skipped ones that Redis keeps.
    private func detailedURLs(
        of settled: [SettledURL], in status: BatchStatus, otherwise reason: PrefetchError
    ) async throws(PrefetchError) -> [String] {
        let indices = settled.filter(\.outcome.isSkipped).map(\.index)
        let details: [Int: FailureDetail]
        do throws(RedisError) { details = try await queue.results.details(of: status.id, indices: indices) } catch {
            throw PrefetchError(error)
        }
        var urls: [String] = []
        for item in settled {
            guard let detail = details[item.index] else {
                throw PrefetchError(
                    .unreadableList, "which URLs ended is only in the list: \(reason.message)",
                    hint: reason.hint)
            }
            urls.append(detail.url)
        }
        return urls
    }
}

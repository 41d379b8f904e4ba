internal import Redis

/// Pushes the lists of an open batch in order, from where Redis is: its own list, and readable earlier lists whose feeder is silent. A dead
/// feeder on this machine therefore blocks no later list.
package struct OpenBatchFeeder: Sendable {
    package enum Notice: Sendable {
        /// The window or Redis is full: workers have to claim jobs first.
        case waitingForRoom(ListFeeder.Wait)
        /// This earlier list is fed by others, or cannot be read here.
        case waitingForList(ListSegment)
    }

    private let queue: PrefetchQueue
    private let batch: String
    private let list: URLList?
    private let window: String
    private let jobSize: Int?
    private let silence: Int

    /// * `list`: a list this process can read, even if others feed it too.
    /// * `window`, `jobSize`: see ``ListFeeder``.
    /// * `silence`: milliseconds without a push until a list of another process is fed here.
    package init(
        queue: PrefetchQueue, batch: String, list: URLList?, window: String = "auto", jobSize: Int? = nil,
        silence: Int = Int.random(in: 2_000...3_000)
    ) {
        self.queue = queue
        self.batch = batch
        self.list = list
        self.window = window
        self.jobSize = jobSize
        self.silence = silence
    }

    /// Feeds until every URL below an index is pushed; nil: until the batch is sealed.
    package func feed(
        to end: Int?, notice: @escaping @Sendable (Notice) -> Void = { _ in }
    ) async throws(PrefetchError) -> ListFeeder.End {
        var waited = ContinuousClock.now
        var named: Int?
        while true {
            let (id, queue) = (batch, queue)
            let reading = try await bridgingErrors { () async throws(RedisError) in
                (try await queue.batches.status(of: id), try await queue.lists.segments(of: id))
            }
            guard let status = reading.0 else { return .closed("gone") }
            if status.state == .cancelled { return .closed(status.state.rawValue) }
            if status.isSealed { return .sealed }
            if let end, status.pushed >= end { return .fed }
            guard let next = reading.1.first(where: { $0.base <= status.pushed && status.pushed < $0.end }) else {
                // Redis has lost its last writes: the list, or that the batch is to be sealed.
                guard end == nil else { return .closed("unlisted") }
                _ = try await bridgingErrors { () async throws(RedisError) in try await queue.lists.close(batch: id) }
                try await pause(.milliseconds(50))
                continue
            }
            let isOwn = next.hash == list?.hash
            if isOwn || status.at - status.fed >= silence, let found = isOwn ? list : Self.readable(next) {
                let entries = BatchEntries(found, as: next)
                let end = try await ListFeeder(
                    queue: queue, entries: entries, of: found.path, batch: batch, window: window, jobSize: jobSize,
                    segment: next
                ).feed(waiting: { notice(.waitingForRoom($0)) })
                if case .closed = end { return end }
                waited = .now
                continue
            }
            if named != next.number, ContinuousClock.now - waited > .seconds(2) {
                named = next.number
                notice(.waitingForList(next))
            }
            try await pause(.milliseconds(named == nil ? 50 : 500))
        }
    }

    /// A list of another process, if it is unchanged and readable here.
    private static func readable(_ segment: ListSegment) -> URLList? {
        guard segment.host == ThisHost.name, let list = try? URLList(path: segment.path) else { return nil }
        return list.hash == segment.hash ? list : nil
    }

    private func pause(_ duration: Duration) async throws(PrefetchError) {
        do { try await Task.sleep(for: duration) } catch {
            throw PrefetchError(.stopped, "stopped before the whole list was queued")
        }
    }
}

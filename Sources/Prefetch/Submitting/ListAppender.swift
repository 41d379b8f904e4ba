internal import Redis

/// Adds a list to an open batch. Registering the list is one step, so any number of processes may do so at once; then its URLs are pushed,
/// and a later process with the same list can continue that.
package struct ListAppender: Sendable {
    package struct Added: Sendable, Equatable {
        package var segment: ListSegment
        package var isNew: Bool
        /// Whether all its URLs had been pushed before.
        package var wasFed: Bool
    }

    private let queue: PrefetchQueue
    private let batch: String
    private let list: URLList
    private let feeder: OpenBatchFeeder

    package init(
        queue: PrefetchQueue, batch: String, list: URLList, window: String = "auto", jobSize: Int? = nil
    ) {
        self.queue = queue
        self.batch = batch
        self.list = list
        feeder = OpenBatchFeeder(queue: queue, batch: batch, list: list, window: window, jobSize: jobSize)
    }

    /// Registers the list after all others, or finds it.
    /// * `again`: whether a list that is there and fully pushed is added once more.
    /// - Throws: `notFound` if there is no such batch, `configuration` if it takes no list.
    package func add(again: Bool = false) async throws(PrefetchError) -> Added {
        let nonce = "\(UInt64.random(in: 0...UInt64.max))-\(UInt64.random(in: 0...UInt64.max))"
        let result: QueueLists.AppendResult
        do throws(RedisError) {
            result = try await queue.lists.append(
                hash: list.hash, total: list.total, lines: list.lines, path: list.absolutePath, to: batch, nonce: nonce,
                host: ThisHost.name, again: again)
        } catch {
            throw PrefetchError(error)
        }
        switch result {
        case .listed(let segment, let isNew, let pushed):
            return Added(segment: segment, isNew: isNew, wasFed: pushed >= segment.end)
        case .closed(let why): throw Self.refusal(of: batch, why)
        }
    }

    /// Pushes its URLs, after those of the lists before it.
    /// - Throws: as ``ListFeeder/feed(pushed:waiting:)``; if the batch has ended meanwhile as ``add(again:)``.
    package func feed(
        _ added: Added, notice: @escaping @Sendable (OpenBatchFeeder.Notice) -> Void = { _ in }
    ) async throws(PrefetchError) {
        var added = added
        while true {
            switch try await feeder.feed(to: added.segment.end, notice: notice) {
            case .closed("unlisted"): added = try await add()
            case .closed(let why): throw Self.refusal(of: batch, why)
            default: return
            }
        }
    }

    package static func refusal(of batch: String, _ why: String) -> PrefetchError {
        switch why {
        case "gone":
            PrefetchError(.notFound, "there is no batch '\(batch)'", hint: "see them all: prefetch-coord status")
        case "single":
            PrefetchError(
                .configuration, "\(batch) has one list and takes no more: it was not submitted with --open",
                hint: "submit the list as a batch of its own")
        default:
            PrefetchError(
                .configuration, "\(batch) is \(why) and takes no more lists",
                hint: "submit the list as a batch of its own")
        }
    }
}

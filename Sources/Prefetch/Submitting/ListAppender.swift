internal import Redis

/// Adds a list to an open batch. The list takes its place in one step, so any number may add theirs at once; then its URLs are pushed,
/// which whoever comes later with the same list goes on with.
package struct ListAppender: Sendable {
    /// A list that is one of the batch's.
    package struct Added: Sendable, Equatable {
        /// Its place.
        package var segment: ListSegment
        /// Whether it was not there before.
        package var isNew: Bool
        /// Whether every URL of it was pushed before.
        package var wasFed: Bool
    }

    private let queue: PrefetchQueue
    private let batch: String
    private let list: URLList
    private let feeder: OpenBatchFeeder

    /// * `window`, `jobSize`: as of ``ListFeeder``.
    package init(
        queue: PrefetchQueue, batch: String, list: URLList, window: String = "auto", jobSize: Int? = nil
    ) {
        self.queue = queue
        self.batch = batch
        self.list = list
        feeder = OpenBatchFeeder(queue: queue, batch: batch, list: list, window: window, jobSize: jobSize)
    }

    /// Gives the list its place behind all others, or finds the place it has.
    ///
    /// * `again`: whether a list that is there to its end is added once more.
    /// - Throws: `notFound` where there is no such batch, `configuration` where it takes no list.
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

    /// Pushes its URLs, behind those of the lists before it.
    /// - Throws: as ``ListFeeder/feed(pushed:waiting:)``; where the batch was ended meanwhile as ``add(again:)``.
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

    /// Why a batch takes no list.
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

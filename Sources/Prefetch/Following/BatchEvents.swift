public import WebImage

/// The events of a batch as an `AsyncSequence`: for each URL that ends `progress` and `didPrefetch`, at the end `didFinish` and
/// `completion`, once, also if the batch is cancelled: its open URLs count as `cancelled`. `result` of each URL is nil, since another
/// process has it.
///
/// Nothing is buffered: each iterator follows the batch separately, waits while Redis is unreachable, and may be dropped at any time; the
/// batch goes on.
public struct BatchEvents: AsyncSequence, Sendable {
    /// An event of the batch.
    public typealias Element = PrefetchEvent
    /// `notFound` if Redis does not have the batch (any more), `unreadableList` if a URL is only in a list that is missing.
    public typealias Failure = PrefetchError

    private let follow: @Sendable () -> BatchEventReader

    init(follow: @escaping @Sendable () -> BatchEventReader) {
        self.follow = follow
    }

    /// Starts to follow.
    public func makeAsyncIterator() -> Iterator { Iterator(following: follow()) }

    /// Follows the batch for one reader.
    public struct Iterator: AsyncIteratorProtocol {
        private let following: BatchEventReader
        private var events: [PrefetchEvent] = []
        private var next = 0

        init(following: BatchEventReader) {
            self.following = following
        }

        /// The next event; nil after the last, and if the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(PrefetchError) -> PrefetchEvent? {
            while next == events.count {
                guard let more = try await following.next() else { return nil }
                (events, next) = (more, 0)
            }
            defer { next += 1 }
            return events[next]
        }

        /// The next event; nil after the last, and if the task is cancelled.
        public mutating func next() async throws(PrefetchError) -> PrefetchEvent? {
            try await next(isolation: nil)
        }
    }
}

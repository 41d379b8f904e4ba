public import WebImage

/// What happens to a batch, as an `AsyncSequence`: for each URL that ends `progress` and `didPrefetch`, at the end `didFinish` and
/// `completion`, once. A batch that is cancelled ends so too, with its open URLs as `cancelled`. `result` of each URL is nil, since another
/// process has it.
///
/// Nothing is buffered: each iterator follows the batch by itself, waits for a Redis that is away, and may be left at any time; the
/// batch goes on.
public struct BatchEvents: AsyncSequence, Sendable {
    /// What is iterated.
    public typealias Element = PrefetchEvent
    /// `notFound` where Redis does not know the batch (any more), `unreadableList` where the name of a URL is only in a list that is not there.
    public typealias Failure = PrefetchError

    private let follow: @Sendable () -> BatchFollowing

    init(follow: @escaping @Sendable () -> BatchFollowing) {
        self.follow = follow
    }

    /// Begins to follow.
    public func makeAsyncIterator() -> Iterator { Iterator(following: follow()) }

    /// One follower.
    public struct Iterator: AsyncIteratorProtocol {
        private let following: BatchFollowing
        private var events: [PrefetchEvent] = []
        private var next = 0

        init(following: BatchFollowing) {
            self.following = following
        }

        /// The next event; nil after the last, and where the task is cancelled.
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

        /// The next event; nil after the last, and where the task is cancelled.
        public mutating func next() async throws(PrefetchError) -> PrefetchEvent? {
            try await next(isolation: nil)
        }
    }
}

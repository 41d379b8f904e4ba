internal import Glibc
public import Redis
internal import Threading
public import WebImage

/// Loads lists of URLs into the cache of worker processes, on this machine or others, over one Redis (SDWebImagePrefetcher for many
/// processes). The delegate, the closures and the events are those of ``ImagePrefetcher``.
///
/// Every URL ends exactly once, with an image or as skipped, whichever worker did it and whatever died meanwhile. This process only puts
/// the list into Redis (``BatchToken/waitUntilQueued()``) and follows. SIGPIPE is ignored from the first prefetcher on, unless the program
/// handles it itself: a Redis that goes away must not end the process.
public final class DistributedImagePrefetcher: ImagePrefetching {
    /// Where lists go.
    public struct Configuration: Sendable {
        /// The queue in Redis, `default` as the commands; 1 to 64 of `A-Z a-z 0-9 _ -`.
        public var queue = "default"
        /// The folder for lists that come from memory, which must be there. They stay in it, for whoever follows the batch later, and
        /// are yours to remove. Nil (default): TMPDIR or `/tmp`, where each list is removed when this process has told the end of its
        /// batch; who follows from the start after that is asked for the list.
        public var listFolder: String?
        /// Seconds a batch stays in Redis after its end, 7 days by default; 0 = for ever.
        public var keep = 7 * 86_400
        /// Jobs of a batch that wait in Redis: `auto` (default: 1,024 shared by the running batches), `all`, or a number.
        public var window = "auto"
        /// URLs a job, 1 to 256; nil (default): a 64th of the list, and at least 4.
        public var jobSize: Int?

        /// The defaults.
        public init() {}
    }

    struct State {
        weak var delegate: (any ImagePrefetcherDelegate)?
        var submitted: [ObjectIdentifier: BatchToken] = [:]
        var followed: [ObjectIdentifier: BatchToken] = [:]
        var isChecked = false
    }

    /// How much it does, and where.
    public let configuration: Configuration
    let queue: PrefetchQueue
    let state = Locked(State())

    /// A prefetcher over a Redis. Nothing is connected yet.
    /// - Throws: `configuration` where the queue has no valid name.
    public init(
        redis: RedisConfiguration, configuration: Configuration = Configuration()
    ) throws(PrefetchError) {
        guard PrefetchQueue.isValidName(configuration.queue) else {
            throw PrefetchError(
                .configuration, "'\(configuration.queue)' is no name of a queue",
                hint: "use 1 to 64 letters, digits, '_' or '-'")
        }
        var action = sigaction()
        if sigaction(SIGPIPE, nil, &action) == 0, action.__sigaction_handler.sa_handler == nil {
            signal(SIGPIPE, SIG_IGN)
        }
        self.configuration = configuration
        queue = PrefetchQueue(redis, client: "prefetcher", name: configuration.queue)
    }

    /// A prefetcher over a Redis by its URL: `redis://[user[:password]@]host[:port][/db]` or `unix:///path?db=1`.
    /// - Throws: `configuration` where the URL is none of Redis, or the queue has no valid name.
    public convenience init(
        redisURL: String, configuration: Configuration = Configuration()
    ) throws(PrefetchError) {
        let redis: RedisConfiguration
        do throws(RedisError) { redis = try RedisConfiguration(url: redisURL) } catch { throw PrefetchError(error) }
        try self.init(redis: redis, configuration: configuration)
    }

    /// Who follows every list, those of others that are followed too; not retained.
    public var delegate: (any ImagePrefetcherDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { [weak newValue] in $0.delegate = newValue } }
    }

    /// How many batches that were submitted or are followed here have neither ended nor been cancelled.
    public var runningTokenCount: Int {
        let tokens = state.withLock { Array($0.submitted.values) + Array($0.followed.values) }
        return tokens.count { !$0.isCancelled && !$0.hasEnded }
    }

    /// Cancels every batch that was submitted here; each has its `didFinish` and completion, once. Those of others go on.
    /// - Throws: `redisUnavailable` where Redis has been away for 10 s.
    public func cancelPrefetching() async throws(PrefetchError) {
        for token in state.withLock({ Array($0.submitted.values) }) { try await token.cancel() }
    }
}

internal import Glibc
public import Redis
internal import Threading
public import WebImage

/// Loads lists of URLs into the cache of worker processes, on this machine or others, over one Redis (SDWebImagePrefetcher for many
/// processes). Delegate, closures and events are those of ``ImagePrefetcher``.
///
/// Every URL ends exactly once, with an image or as skipped, whichever worker handles it and whatever fails meanwhile. This process only
/// puts the list into Redis (``BatchToken/waitUntilQueued()``) and follows. The first prefetcher makes the process ignore SIGPIPE, unless
/// the program handles it: losing Redis must not end the process.
public final class DistributedImagePrefetcher: ImagePrefetching {
    /// The queue, and how lists are put into it.
    public struct Configuration: Sendable {
        /// The queue in Redis, `default` as in the commands; 1 to 64 of `A-Z a-z 0-9 _ -`.
        public var queue = "default"
        /// An existing folder for lists that come from memory. They stay in it for later followers, and the caller removes them. Nil
        /// (default): TMPDIR or `/tmp`, where each list is removed when this process has reported the end of its batch: a later follower
        /// from the start is not told URLs.
        public var listFolder: String?
        /// Seconds a batch stays in Redis after its end, 7 days by default; 0 = forever.
        public var keep = 7 * 86_400
        /// Jobs of a batch that wait in Redis: `auto` (default: 1,024 shared by the running batches), `all`, or a number.
        public var window = "auto"
        /// URLs per job, 1 to 256; nil (default): a 64th of the list, and at least 4.
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

    /// The settings it was created with.
    public let configuration: Configuration
    let queue: PrefetchQueue
    let state = Locked(State())

    /// A prefetcher over a Redis. Does not connect yet.
    /// - Throws: `configuration` if the queue's name is invalid.
    public init(
        redis: RedisConfiguration, configuration: Configuration = Configuration()
    ) throws(PrefetchError) {
        guard PrefetchQueue.isValidName(configuration.queue) else {
            throw PrefetchError(
                .configuration, "'\(configuration.queue)' is not a valid queue name",
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
    /// - Throws: `configuration` if the URL or the queue's name is invalid.
    public convenience init(
        redisURL: String, configuration: Configuration = Configuration()
    ) throws(PrefetchError) {
        let redis: RedisConfiguration
        do throws(RedisError) { redis = try RedisConfiguration(url: redisURL) } catch { throw PrefetchError(error) }
        try self.init(redis: redis, configuration: configuration)
    }

    /// Gets the calls of every list, including followed lists of other processes; not retained.
    public var delegate: (any ImagePrefetcherDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { [weak newValue] in $0.delegate = newValue } }
    }

    /// Batches submitted or followed here that have neither ended nor been cancelled.
    public var runningTokenCount: Int {
        let tokens = state.withLock { Array($0.submitted.values) + Array($0.followed.values) }
        return tokens.count { !$0.isCancelled && !$0.hasEnded }
    }

    /// Stops the start of transfers for the whole queue; running ones go on.
    /// - Throws: `redisUnavailable` if Redis has been unreachable for 10 s.
    public func pause() async throws(PrefetchError) {
        do throws(RedisError) { _ = try await queue.control.pause(.queue) } catch { throw PrefetchError(error) }
    }

    /// Lets the queue go on.
    /// - Throws: `redisUnavailable` if Redis has been unreachable for 10 s.
    public func resume() async throws(PrefetchError) {
        do throws(RedisError) { _ = try await queue.control.resume(.queue) } catch { throw PrefetchError(error) }
    }

    /// Sets the concurrent transfers of every worker of the queue, also of later ones; nil: each worker's own.
    /// - Throws: `configuration` for a number outside 1 to 4,096; `redisUnavailable` if Redis has been unreachable for 10 s.
    public func setMaxConcurrentDownloads(_ count: ConcurrentDownloads?) async throws(PrefetchError) {
        if let number = count?.count, !QueueControl.concurrencyRange.contains(number) {
            throw PrefetchError(.configuration, "maxConcurrentDownloads must be 1 to 4,096")
        }
        do throws(RedisError) { _ = try await queue.control.setConcurrency(count, worker: nil) } catch {
            throw PrefetchError(error)
        }
    }

    /// Cancels every batch that was submitted here; each gets its `didFinish` and completion, once. Batches of others go on.
    /// - Throws: `redisUnavailable` if Redis has been unreachable for 10 s.
    public func cancelPrefetching() async throws(PrefetchError) {
        for token in state.withLock({ Array($0.submitted.values) }) { try await token.cancel() }
    }
}

// MARK: - Starting

extension DistributedImagePrefetcher {
    /// Puts a list into the queue. For each URL that ends `progress` is called, then the delegate; at the end the delegate's `didFinish`
    /// and then `completed`, once, also if the batch was cancelled. An empty list only calls `completed`, with (0, 0).
    ///
    /// The list is written to a file first (``Configuration/listFolder``) and fed from there; the queue does not keep it in memory.
    /// - Parameters:
    ///   - urls: in the order in which they are started. Duplicates each count.
    ///   - options: of the batch, for every worker.
    ///   - settings: its name, its turn and its end. The running batch in its slot, of any process, is cancelled in the same step.
    ///   - progress: called for each URL that ended, with finishedCount and totalCount, before the delegate.
    ///   - completed: called once at the end with finishedCount and skippedCount, after the delegate.
    /// - Returns: once the batch is created; feeding and following go on even if the token is dropped.
    /// - Throws: `inputOutput` if the list cannot be written, `redisUnavailable` if Redis is unreachable for 10 s, `configuration` if it
    ///   is not set up for a queue.
    @discardableResult
    public func prefetch(
        _ urls: [String], options: BatchOptions = BatchOptions(), settings: PrefetchSettings = PrefetchSettings(),
        progress: (@Sendable (_ finishedCount: Int, _ totalCount: Int) -> Void)? = nil,
        completed: (@Sendable (_ finishedCount: Int, _ skippedCount: Int) -> Void)? = nil
    ) async throws(PrefetchError) -> BatchToken {
        let list = try ListSpool.write(urls, into: configuration.listFolder)
        let removed = configuration.listFolder == nil ? list.path : nil
        do throws(PrefetchError) {
            return try await submit(
                list, options, settings, urls: urls, removing: removed, progress: progress, completed: completed)
        } catch {
            unlink(list.path)
            throw error
        }
    }

    /// Puts a list from a file into the queue: one URL per line, `#` begins a comment. The file must not change until the batch is queued,
    /// and while it is followed; it is never removed. Otherwise as ``prefetch(_:options:settings:progress:completed:)``.
    /// - Throws: `notFound`, `unreadableList` if the file is not a list, and as the other.
    @discardableResult
    public func prefetch(
        listAt path: String, options: BatchOptions = BatchOptions(), settings: PrefetchSettings = PrefetchSettings(),
        progress: (@Sendable (_ finishedCount: Int, _ totalCount: Int) -> Void)? = nil,
        completed: (@Sendable (_ finishedCount: Int, _ skippedCount: Int) -> Void)? = nil
    ) async throws(PrefetchError) -> BatchToken {
        try await submit(
            URLList(path: path), options, settings, urls: nil, removing: nil, progress: progress, completed: completed)
    }

    /// Puts a list into the queue, and returns all its events from the first URL on; the delegate is called as always. Ending the iteration
    /// only stops following: the batch goes on.
    /// - Throws: as ``prefetch(_:options:settings:progress:completed:)``.
    public func events(
        for urls: [String], options: BatchOptions = BatchOptions(), settings: PrefetchSettings = PrefetchSettings()
    ) async throws(PrefetchError) -> BatchEvents {
        let token = try await prefetch(urls, options: options, settings: settings)
        let (queue, id) = (queue, token.id)
        return BatchEvents { BatchEventReader(queue: queue, batch: id, from: .beginning, urls: urls) }
    }

    private func submit(
        _ list: URLList, _ options: BatchOptions, _ settings: PrefetchSettings, urls: [String]?,
        removing path: String?,
        progress: (@Sendable (Int, Int) -> Void)?, completed: (@Sendable (Int, Int) -> Void)?
    ) async throws(PrefetchError) -> BatchToken {
        do throws(WebImageError) { try settings.validate() } catch {
            throw PrefetchError(.configuration, error.message)
        }
        try await checkServer()
        var batch = NewBatch(list: list)
        (batch.settings.options, batch.settings.turn) = (options, settings)
        batch.settings.keep = Double(configuration.keep)
        let opened = try await batch.open(in: queue)
        let token = BatchToken(id: opened.id, replaced: opened.replaced, queue: queue)
        state.withLock { $0.submitted[ObjectIdentifier(token)] = token }
        feed(token, list)
        let following = BatchEventReader(
            queue: queue, batch: token.id, from: .beginning, urls: urls)
        follow(token, following, progress: progress, completed: completed) { status in
            if status != nil, let path { unlink(path) }
            self.state.withLock { $0.submitted[ObjectIdentifier(token)] = nil }
        }
        return token
    }

    /// A queue must not be in a Redis that may evict parts of it. Checked once.
    private func checkServer() async throws(PrefetchError) {
        guard !state.withLock({ $0.isChecked }) else { return }
        do throws(RedisError) {
            _ = try await queue.checkServer()
        } catch {
            throw PrefetchError(error)
        }
        state.withLock { $0.isChecked = true }
    }

    /// Feeds the list without a timeout, also while Redis is unreachable.
    private func feed(_ token: BatchToken, _ list: URLList) {
        let waitingQueue = PrefetchQueue(
            ScriptRunner(connection: queue.connection, keys: queue.keys, waitLimit: nil))
        let feeder = ListFeeder(
            queue: waitingQueue, list: list, batch: token.id, window: configuration.window,
            jobSize: configuration.jobSize)
        Task {
            do throws(PrefetchError) {
                _ = try await feeder.feed()
                token.noteQueued(.success(()))
            } catch {
                token.noteQueued(.failure(error))
            }
        }
    }
}

// MARK: - Following

extension DistributedImagePrefetcher {
    /// Follows a batch of another process: closures and delegate are called as for one submitted here.
    /// - Parameters:
    ///   - id: its whole id.
    ///   - fromStart: true (default): everything from the first URL on. False: the current counts as one `progress`, then new events.
    ///   - progress: called for each URL that ended, with finishedCount and totalCount, before the delegate.
    ///   - completed: called once at the end with finishedCount and skippedCount, after the delegate.
    /// - Returns: a token to cancel the batch for all, or to stop following it. Following goes on even if the token is dropped.
    /// - Throws: `notFound` if Redis has no such batch, `redisUnavailable` if it is unreachable for 10 s.
    @discardableResult
    public func follow(
        _ id: String, fromStart: Bool = true,
        progress: (@Sendable (_ finishedCount: Int, _ totalCount: Int) -> Void)? = nil,
        completed: (@Sendable (_ finishedCount: Int, _ skippedCount: Int) -> Void)? = nil
    ) async throws(PrefetchError) -> BatchToken {
        let status: BatchStatus?
        do throws(RedisError) { status = try await queue.batches.status(of: id) } catch { throw PrefetchError(error) }
        guard status != nil else { throw PrefetchError(.notFound, "there is no batch '\(id)'") }
        let token = BatchToken(id: id, replaced: nil, queue: queue)
        // Its feeder alone knows how far it is queued.
        token.noteQueued(.success(()))
        state.withLock { $0.followed[ObjectIdentifier(token)] = token }
        let following = BatchEventReader(
            queue: queue, batch: id, from: fromStart ? .beginning : .present)
        follow(token, following, progress: progress, completed: completed) { _ in
            self.state.withLock { $0.followed[ObjectIdentifier(token)] = nil }
        }
        return token
    }

    /// The events of a batch of any process; neither delegate nor closures are called.
    /// - Parameters:
    ///   - id: its whole id.
    ///   - fromStart: true (default): everything from the first URL on. False: the current counts as one `progress`, then new events.
    /// - Returns: a sequence; each of its iterators follows separately.
    public func events(
        ofBatch id: String, fromStart: Bool = true
    ) -> BatchEvents {
        let queue = queue
        return BatchEvents {
            BatchEventReader(queue: queue, batch: id, from: fromStart ? .beginning : .present)
        }
    }

    /// Reports all events of a batch until it ends or is no longer followed.
    func follow(
        _ token: BatchToken, _ following: BatchEventReader, progress: (@Sendable (Int, Int) -> Void)?,
        completed: (@Sendable (Int, Int) -> Void)?, onEnd: @escaping @Sendable (BatchStatus?) -> Void
    ) {
        let task = Task {
            var end: Result<BatchStatus, PrefetchError>?
            do throws(PrefetchError) {
                while let events = try await following.next() {
                    for event in events {
                        tell(event, progress, completed)
                    }
                    if await following.hasEnded, let status = await following.status { end = .success(status) }
                }
            } catch {
                end = .failure(error)
            }
            if case .success(let status) = end { onEnd(status) } else { onEnd(nil) }
            token.recordEnd(end ?? .failure(PrefetchError(.stopped, "\(token.id) is no longer followed")))
        }
        token.start(task)
    }

    /// SDWebImagePrefetcher's order: closures before the delegate.
    private func tell(
        _ event: PrefetchEvent, _ progress: (@Sendable (Int, Int) -> Void)?,
        _ completed: (@Sendable (Int, Int) -> Void)?
    ) {
        switch event {
        case .progress(let finished, let total): progress?(finished, total)
        case .didPrefetch(let url, let finished, let total, _, _):
            delegate?.imagePrefetcher(self, didPrefetch: url, finishedCount: finished, totalCount: total)
        case .didFinish(let total, let skipped):
            delegate?.imagePrefetcher(self, didFinishWithTotalCount: total, skippedCount: skipped)
        case .completion(let finished, let skipped): completed?(finished, skipped)
        }
    }
}

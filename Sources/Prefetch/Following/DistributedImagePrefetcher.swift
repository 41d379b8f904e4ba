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

// MARK: - Starting

extension DistributedImagePrefetcher {
    /// Puts a list into the queue. For each URL that ends `progress` is called, then the delegate; at the end the delegate's `didFinish`
    /// and then `completed`, once, also where the batch was cancelled. An empty list has its `completed` with (0, 0) alone.
    ///
    /// The list is written to a file first (``Configuration/listFolder``) and fed from there; it is not kept in memory by the queue.
    /// - Parameters:
    ///   - urls: in the order in which they are started. Duplicates each count.
    ///   - options: what the batch asks of every worker.
    ///   - slot: 1 to 64 of `A-Z a-z 0-9 _ -`: the running batch that has it, from whatever process, is cancelled in the same step
    ///     (`sd_cancelCurrentImageLoad`).
    ///   - progress: called for each URL that ended, with finishedCount and totalCount, before the delegate.
    ///   - completed: called once at the end with finishedCount and skippedCount, after the delegate.
    /// - Returns: once the batch is made; feeding and following go on when nobody keeps the token.
    /// - Throws: `inputOutput` where the list cannot be written, `redisUnavailable` where Redis is away for 10 s, `configuration` where
    ///   it can keep no queue.
    @discardableResult
    public func prefetch(
        _ urls: [String], options: BatchOptions = BatchOptions(), slot: String? = nil,
        progress: (@Sendable (_ finishedCount: Int, _ totalCount: Int) -> Void)? = nil,
        completed: (@Sendable (_ finishedCount: Int, _ skippedCount: Int) -> Void)? = nil
    ) async throws(PrefetchError) -> BatchToken {
        let list = try ListSpool.write(urls, into: configuration.listFolder)
        let removed = configuration.listFolder == nil ? list.path : nil
        do throws(PrefetchError) {
            return try await submit(
                list, options, slot, urls: urls, removing: removed, progress: progress, completed: completed)
        } catch {
            unlink(list.path)
            throw error
        }
    }

    /// Puts a list from a file into the queue: one URL a line, `#` begins a comment. The file has to stay as it is until the batch is
    /// queued, and for whoever follows it; it is never removed. Otherwise as ``prefetch(_:options:slot:progress:completed:)``.
    /// - Throws: `notFound`, `unreadableList` where the file is no list, and as the other.
    @discardableResult
    public func prefetch(
        listAt path: String, options: BatchOptions = BatchOptions(), slot: String? = nil,
        progress: (@Sendable (_ finishedCount: Int, _ totalCount: Int) -> Void)? = nil,
        completed: (@Sendable (_ finishedCount: Int, _ skippedCount: Int) -> Void)? = nil
    ) async throws(PrefetchError) -> BatchToken {
        try await submit(
            URLList(path: path), options, slot, urls: nil, removing: nil, progress: progress, completed: completed)
    }

    /// Puts a list into the queue, and gives everything that happens to it from its first URL on; the delegate is called as always. Who
    /// stops reading stops following only: a batch needs nobody.
    /// - Throws: as ``prefetch(_:options:slot:progress:completed:)``.
    public func events(
        for urls: [String], options: BatchOptions = BatchOptions(), slot: String? = nil
    ) async throws(PrefetchError) -> BatchEvents {
        let token = try await prefetch(urls, options: options, slot: slot)
        let (queue, id) = (queue, token.id)
        return BatchEvents { BatchFollowing(queue: queue, batch: id, from: .beginning, urls: urls) }
    }

    private func submit(
        _ list: URLList, _ options: BatchOptions, _ slot: String?, urls: [String]?, removing path: String?,
        progress: (@Sendable (Int, Int) -> Void)?, completed: (@Sendable (Int, Int) -> Void)?
    ) async throws(PrefetchError) -> BatchToken {
        if let slot, !PrefetchQueue.isValidName(slot) {
            throw PrefetchError(
                .configuration, "'\(slot)' is not a valid slot name", hint: "use 1 to 64 letters, digits, '_' or '-'")
        }
        try await checkServer()
        var batch = NewBatch(list: list)
        batch.options = options
        batch.slot = slot
        batch.keep = configuration.keep
        let opened = try await batch.open(in: queue)
        let token = BatchToken(id: opened.id, replaced: opened.replaced, queue: queue)
        state.withLock { $0.submitted[ObjectIdentifier(token)] = token }
        feed(token, list)
        let following = BatchFollowing(
            queue: queue, batch: token.id, from: .beginning, urls: urls, listPath: urls == nil ? list.path : nil)
        follow(token, following, progress: progress, completed: completed) { status in
            if status != nil, let path { unlink(path) }
            self.state.withLock { $0.submitted[ObjectIdentifier(token)] = nil }
        }
        return token
    }

    /// A queue must not be put where Redis may throw parts of it away. Asked once.
    private func checkServer() async throws(PrefetchError) {
        guard !state.withLock({ $0.isChecked }) else { return }
        do throws(RedisError) {
            _ = try await queue.checkServer()
        } catch {
            throw PrefetchError(error)
        }
        state.withLock { $0.isChecked = true }
    }

    /// Feeds the list, as long as that takes; a Redis that is away is waited for.
    private func feed(_ token: BatchToken, _ list: URLList) {
        let patient = PrefetchQueue(
            ScriptRunner(connection: queue.connection, keys: queue.keys, patience: nil))
        let feeder = ListFeeder(
            queue: patient, list: list, batch: token.id, window: configuration.window, jobSize: configuration.jobSize)
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
    /// Follows a batch that somebody else has submitted: closures and delegate are called as for one of ours.
    /// - Parameters:
    ///   - id: its whole name.
    ///   - fromStart: true (default): everything from the first URL on. False: the counts of now as one `progress`, then what comes.
    ///   - listPath: where its list is, if not where it was read.
    ///   - progress: called for each URL that ended, with finishedCount and totalCount, before the delegate.
    ///   - completed: called once at the end with finishedCount and skippedCount, after the delegate.
    /// - Returns: what cancels the batch for all, or stops following it. It goes on when nobody keeps it.
    /// - Throws: `notFound` where Redis has no such batch, `redisUnavailable` where it is away for 10 s.
    @discardableResult
    public func follow(
        _ id: String, fromStart: Bool = true, listPath: String? = nil,
        progress: (@Sendable (_ finishedCount: Int, _ totalCount: Int) -> Void)? = nil,
        completed: (@Sendable (_ finishedCount: Int, _ skippedCount: Int) -> Void)? = nil
    ) async throws(PrefetchError) -> BatchToken {
        let status: BatchStatus?
        do throws(RedisError) { status = try await queue.batches.status(of: id) } catch { throw PrefetchError(error) }
        guard status != nil else { throw PrefetchError(.notFound, "there is no batch '\(id)'") }
        let token = BatchToken(id: id, replaced: nil, queue: queue)
        // How far it is queued is its feeder's business.
        token.noteQueued(.success(()))
        state.withLock { $0.followed[ObjectIdentifier(token)] = token }
        let following = BatchFollowing(
            queue: queue, batch: id, from: fromStart ? .beginning : .present, listPath: listPath)
        follow(token, following, progress: progress, completed: completed) { _ in
            self.state.withLock { $0.followed[ObjectIdentifier(token)] = nil }
        }
        return token
    }

    /// What happens to a batch, whoever submitted it; neither delegate nor closures are called.
    /// - Parameters:
    ///   - id: its whole name.
    ///   - fromStart: true (default): everything from the first URL on. False: the counts of now as one `progress`, then what comes.
    ///   - listPath: where its list is, if not where it was read.
    /// - Returns: a sequence each of whose iterators follows by itself.
    public func events(
        ofBatch id: String, fromStart: Bool = true, listPath: String? = nil
    ) -> BatchEvents {
        let queue = queue
        return BatchEvents {
            BatchFollowing(queue: queue, batch: id, from: fromStart ? .beginning : .present, listPath: listPath)
        }
    }

    /// Tells all that happens to a batch, until it ends or nobody follows any more.
    func follow(
        _ token: BatchToken, _ following: BatchFollowing, progress: (@Sendable (Int, Int) -> Void)?,
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
            token.noteEnd(end ?? .failure(PrefetchError(.stopped, "\(token.id) is no longer followed")))
        }
        token.start(task)
    }

    /// SDWebImagePrefetcher's order: the closures hear of a URL before the delegate does.
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

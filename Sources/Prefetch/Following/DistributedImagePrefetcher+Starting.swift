internal import Glibc
internal import Redis
internal import Threading

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
                .configuration, "'\(slot)' is no name of a slot", hint: "use 1 to 64 letters, digits, '_' or '-'")
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
        let patient = PrefetchQueue(connection: queue.connection, keys: queue.keys, patience: nil)
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

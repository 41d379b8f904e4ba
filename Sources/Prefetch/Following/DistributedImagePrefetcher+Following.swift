internal import Redis
internal import Threading
internal import WebImage

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
        do throws(RedisError) { status = try await queue.status(of: id) } catch { throw PrefetchError(error) }
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
            token.noteEnd(end ?? .failure(PrefetchError(.stopped, "nobody follows \(token.id) any more")))
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

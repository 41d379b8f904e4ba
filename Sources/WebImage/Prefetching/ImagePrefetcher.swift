internal import Threading

/// Loads lists of URLs into the cache with limited concurrency (SDWebImagePrefetcher).
///
/// Every URL ends exactly once, with an image or as skipped; failures do not stop a list. Each list has its own counts and token, and a new
/// one does not cancel the previous one (as in SDWebImage 5). A duplicate URL in a list counts twice but is fetched once: the later one is
/// a hit, or gets the failure of the first.
public final class ImagePrefetcher: ImagePrefetching {
    /// Settings of a prefetcher.
    public struct Configuration: Sendable {
        /// Maximum concurrent loads over all lists: at least 1, default 3 as in SDWebImage.
        public var maxConcurrentPrefetchCount = 3

        /// Default settings.
        public init() {}
    }

    private struct State {
        weak var delegate: (any ImagePrefetcherDelegate)?
        var tokens: [ObjectIdentifier: PrefetchToken] = [:]
    }

    /// The loader of the images.
    public let manager: any ImageLoading
    /// The settings.
    public let configuration: Configuration
    private let limit: ConcurrencyLimit
    private let state = Locked(State())

    /// Creates a prefetcher over a manager, which may be shared.
    public init(manager: any ImageLoading, configuration: Configuration = Configuration()) {
        self.manager = manager
        self.configuration = configuration
        limit = ConcurrencyLimit(max(1, configuration.maxConcurrentPrefetchCount))
    }

    /// The delegate of every list; not retained.
    public var delegate: (any ImagePrefetcherDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { [weak newValue] in $0.delegate = newValue } }
    }

    /// Number of lists that have neither ended nor been cancelled.
    public var runningTokenCount: Int {
        let tokens = state.withLock { Array($0.tokens.values) }
        return tokens.count { !$0.isCancelled }
    }

    /// Starts a list. For an empty one `completed` is called with (0, 0) before this returns, and the delegate is not called.
    /// - Parameters:
    ///   - urls: in the order in which they are started.
    ///   - options: for all of them. With `handleCookies` the list has its own ``CookieJar``.
    ///   - progress: called for each ended URL with finishedCount and totalCount, before the delegate.
    ///   - completed: called once at the end with finishedCount and skippedCount, after the delegate; not after cancellation.
    /// - Returns: a token that cancels this list only. The list continues if it is discarded.
    @discardableResult
    public func prefetch(
        _ urls: [String], options: WebImageOptions = [],
        progress: (@Sendable (_ finishedCount: Int, _ totalCount: Int) -> Void)? = nil,
        completed: (@Sendable (_ finishedCount: Int, _ skippedCount: Int) -> Void)? = nil
    ) -> PrefetchToken {
        start(urls, options) { event in
            switch event {
            case .progress(let finished, let total): progress?(finished, total)
            case .completion(let finished, let skipped): completed?(finished, skipped)
            case .didPrefetch, .didFinish: break
            }
        }
    }

    /// Starts a list and returns its events; the delegate is called too. Events are buffered without limit. Ending the iteration cancels
    /// the list; if it is cancelled, the sequence ends without `didFinish`.
    public func events(
        for urls: [String], options: WebImageOptions = []
    ) -> some AsyncSequence<PrefetchEvent, Never> & Sendable {
        let (stream, continuation) = AsyncStream.makeStream(of: PrefetchEvent.self)
        let token = start(urls, options, onEnd: { continuation.finish() }) { continuation.yield($0) }
        continuation.onTermination = { _ in token.cancel() }
        return stream
    }

    /// Cancels every list. Neither `didFinish` nor a completion is called.
    public func cancelPrefetching() {
        let tokens = state.withLock { Array($0.tokens.values) }
        for token in tokens { token.cancel() }
        state.withLock { state in
            for token in tokens { state.tokens[ObjectIdentifier(token)] = nil }
        }
    }

    private func start(
        _ urls: [String], _ options: WebImageOptions, onEnd: @escaping @Sendable () -> Void = {},
        _ observe: @escaping @Sendable (PrefetchEvent) -> Void
    ) -> PrefetchToken {
        let token = PrefetchToken(urls: urls)
        if urls.isEmpty {
            if token.finish() { observe(.completion(finishedCount: 0, skippedCount: 0)) }
            onEnd()
            return token
        }
        state.withLock { $0.tokens[ObjectIdentifier(token)] = token }
        token.start(
            Task {
                await run(token, options, observe)
                state.withLock { $0.tokens[ObjectIdentifier(token)] = nil }
                onEnd()
            })
        return token
    }

    private func run(
        _ token: PrefetchToken, _ options: WebImageOptions, _ observe: @escaping @Sendable (PrefetchEvent) -> Void
    ) async {
        let (manager, limit, cookies) = (manager, limit, CookieJar())
        var run = PrefetchRun(token.urls) { url in
            await limit.run {
                do throws(WebImageError) {
                    if Task.isCancelled { throw WebImageError(.cancelled, "the prefetch was cancelled") }
                    return .success(
                        try await manager.loadImage(with: url, options: options, cookies: cookies))
                } catch {
                    return .failure(error)
                }
            }
        } report: { event in
            if !token.isCancelled { self.tell(event, observe) }
        }
        let (finished, skipped) = await run.run(width: max(1, configuration.maxConcurrentPrefetchCount))
        guard token.finish() else { return }
        tell(.didFinish(totalCount: finished - skipped, skippedCount: skipped), observe)
        observe(.completion(finishedCount: finished, skippedCount: skipped))
    }

    /// The closures are called before the delegate.
    private func tell(_ event: PrefetchEvent, _ observe: (PrefetchEvent) -> Void) {
        observe(event)
        switch event {
        case .didPrefetch(let url, let finished, let total, _, _):
            delegate?.imagePrefetcher(self, didPrefetch: url, finishedCount: finished, totalCount: total)
        case .didFinish(let total, let skipped):
            delegate?.imagePrefetcher(self, didFinishWithTotalCount: total, skippedCount: skipped)
        case .progress, .completion: break
        }
    }
}

internal import Threading

/// Loads lists of URLs into the cache with limited concurrency (SDWebImagePrefetcher).
///
/// Every URL ends exactly once, with an image or as skipped; failures do not stop a list. Each list has its own counts and token, and a new
/// one does not cancel the previous one (with ``Compatibility/sd3`` it does). A duplicate URL in a list counts twice but is fetched once: the
/// later one is a hit, or gets the failure of the first.
public final class ImagePrefetcher: ImagePrefetching {
    /// Settings of a prefetcher.
    public struct Configuration: Sendable {
        /// Maximum concurrent loads over all lists: at least 1, default 3 as in SDWebImage. ``ImagePrefetcher/maxConcurrentPrefetchCount``
        /// changes it later.
        public var maxConcurrentPrefetchCount = 3
        /// Options of lists that are given none; default `lowPriority` as in SDWebImage.
        public var options: WebImageOptions = .lowPriority
        /// The version of SDWebImage whose calls and counts are followed; default nil.
        public var compatibility: Compatibility?

        /// Default settings.
        public init() {}

        /// Those of a version of SDWebImage.
        public init(compatibility: Compatibility) {
            self.compatibility = compatibility
            maxConcurrentPrefetchCount = compatibility.maxConcurrentPrefetchCount
        }
    }

    private struct State {
        weak var delegate: (any ImagePrefetcherDelegate)?
        var tokens: [ObjectIdentifier: PrefetchToken] = [:]
        var slots: [ByteText: PrefetchToken] = [:]
    }

    /// The loader of the images.
    public let manager: any ImageLoading
    /// The settings it was created with.
    public let configuration: Configuration
    let turns: LoadTurns
    private let state = Locked(State())

    /// Creates a prefetcher over a manager, which may be shared.
    public init(manager: any ImageLoading, configuration: Configuration = Configuration()) {
        self.manager = manager
        self.configuration = configuration
        turns = LoadTurns(max(1, configuration.maxConcurrentPrefetchCount))
    }

    /// The delegate of every list; not retained.
    public var delegate: (any ImagePrefetcherDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { [weak newValue] in $0.delegate = newValue } }
    }

    /// Number of lists that have neither ended nor been cancelled.
    public var runningTokenCount: Int { runningTokens.count { !$0.isCancelled } }

    private var runningTokens: [PrefetchToken] { state.withLock { Array($0.tokens.values) } }

    // MARK: Control

    /// Maximum concurrent loads over all lists, at least 1. A higher number applies as loads end, a lower one to those that start.
    public var maxConcurrentPrefetchCount: Int {
        get { turns.limit }
        set { turns.limit = newValue }
    }

    /// Whether no load starts; running ones go on.
    public var isPaused: Bool {
        get { turns.isPaused }
        set { turns.isPaused = newValue }
    }

    /// Cancels every list. Neither `didFinish` nor a completion is called.
    public func cancelPrefetching() {
        let tokens = runningTokens
        for token in tokens { token.cancel() }
        state.withLock { state in
            for token in tokens { state.tokens[token.id] = nil }
        }
    }

    // MARK: Lists

    /// Starts a list. For an empty one `completed` is called with (0, 0) before this returns, and the delegate is not called.
    ///
    /// A list that ends early, by a deadline or its failures, gets its `didFinish` and completion: open URLs count as skipped.
    /// - Parameters:
    ///   - urls: in the order in which they are started.
    ///   - options: for all of them; nil (default): those of the configuration. With `handleCookies` the list has its own ``CookieJar``.
    ///   - settings: its turn and its end.
    ///   - progress: called for each ended URL with finishedCount and totalCount, before the delegate.
    ///   - completed: called once at the end with finishedCount and skippedCount, after the delegate; not after cancellation.
    /// - Returns: a token that controls this list only. The list continues if it is discarded.
    @discardableResult
    public func prefetch(
        _ urls: [String], options: WebImageOptions? = nil, settings: PrefetchSettings = PrefetchSettings(),
        progress: (@Sendable (_ finishedCount: Int, _ totalCount: Int) -> Void)? = nil,
        completed: (@Sendable (_ finishedCount: Int, _ skippedCount: Int) -> Void)? = nil
    ) -> PrefetchToken {
        start(urls, options, settings) { event in
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
        for urls: [String], options: WebImageOptions? = nil, settings: PrefetchSettings = PrefetchSettings()
    ) -> some AsyncSequence<PrefetchEvent, Never> & Sendable {
        let (stream, continuation) = AsyncStream.makeStream(of: PrefetchEvent.self)
        let token = start(urls, options, settings, onEnd: { continuation.finish() }) { continuation.yield($0) }
        continuation.onTermination = { _ in token.cancel() }
        return stream
    }

    private func start(
        _ urls: [String], _ options: WebImageOptions?, _ settings: PrefetchSettings,
        onEnd: @escaping @Sendable () -> Void = {}, _ observe: @escaping @Sendable (PrefetchEvent) -> Void
    ) -> PrefetchToken {
        if configuration.compatibility == .sd3 { cancelPrefetching() }
        let token = PrefetchToken(urls: urls, settings: settings, turns: turns)
        let replaced = state.withLock { state in settings.slot.flatMap { state.slots.updateValue(token, forKey: $0) } }
        replaced?.cancel()
        if urls.isEmpty {
            if token.finish() { observe(.completion(finishedCount: 0, skippedCount: 0)) }
            leave(token, settings)
            onEnd()
            return token
        }
        state.withLock { $0.tokens[token.id] = token }
        token.start(
            Task {
                await run(token, options ?? configuration.options, settings, observe)
                leave(token, settings)
                onEnd()
            })
        return token
    }

    private func leave(_ token: PrefetchToken, _ settings: PrefetchSettings) {
        state.withLock { state in
            state.tokens[token.id] = nil
            if let slot = settings.slot, state.slots[slot] === token { state.slots[slot] = nil }
        }
        turns.dismiss(token.id)
        token.didReport()
    }

    private func run(
        _ token: PrefetchToken, _ options: WebImageOptions, _ settings: PrefetchSettings,
        _ observe: @escaping @Sendable (PrefetchEvent) -> Void
    ) async {
        let (manager, turns, cookies) = (manager, turns, CookieJar())
        let cancelled = WebImageError(.cancelled, "the prefetch was cancelled")
        var run = PrefetchRun(token.urls, settings: settings) { url in
            let result = await turns.run(token.id, token.priority) { () -> Result<LoadedImage, WebImageError> in
                do throws(WebImageError) {
                    if Task.isCancelled { throw cancelled }
                    token.didRequest()
                    return .success(try await manager.loadImage(with: url, options: options, cookies: cookies))
                } catch {
                    return .failure(error)
                }
            }
            return result ?? .failure(cancelled)
        } didEnd: { url, result in
            token.didEnd(url, result)
        } didClose: {
            turns.dismiss(token.id)
        } report: { event in
            if !token.isCancelled { self.tell(event, observe) }
        }
        await run.run(width: { turns.limit })
        let (finished, skipped) = (run.finishedCount, run.skippedCount)
        guard token.finish() else { return }
        tell(.didFinish(totalCount: finished - skipped, skippedCount: skipped), observe)
        // A caller that learns of the completion finds it ended.
        state.withLock { $0.tokens[token.id] = nil }
        observe(.completion(finishedCount: finished, skippedCount: skipped))
    }

    /// The closures are called before the delegate, where both are for one event.
    private func tell(_ event: PrefetchEvent, _ observe: (PrefetchEvent) -> Void) {
        observe(event)
        guard let delegate else { return }
        switch event {
        case .didPrefetch(let url, let finished, let total, _, _):
            delegate.imagePrefetcher(self, didPrefetch: url, finishedCount: finished, totalCount: total)
        case .didFinish(let total, let skipped):
            delegate.imagePrefetcher(self, didFinishWithTotalCount: total, skippedCount: skipped)
        case .progress, .completion: break
        }
    }
}

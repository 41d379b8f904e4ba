public import FoundationEssentials

// Foundation's URL in the place of its text: `absoluteString` is what is loaded and stored.

extension ImageRequest {
    /// A request for a URL.
    public init(_ url: URL, options: WebImageOptions = []) { self.init(url.absoluteString, options: options) }
}

extension ImageLoading {
    /// Loads one image, as ``loadImage(with:options:)``.
    public func loadImage(with url: URL, options: WebImageOptions = []) async throws(WebImageError) -> LoadedImage {
        try await loadImage(with: url.absoluteString, options: options)
    }
}

extension ImagePrefetcher {
    /// Starts a list, as ``prefetch(_:options:settings:progress:completed:)``.
    @discardableResult
    @_disfavoredOverload
    public func prefetch(
        _ urls: [URL], options: WebImageOptions? = nil, settings: PrefetchSettings = PrefetchSettings(),
        progress: (@Sendable (_ finishedCount: Int, _ totalCount: Int) -> Void)? = nil,
        completed: (@Sendable (_ finishedCount: Int, _ skippedCount: Int) -> Void)? = nil
    ) -> PrefetchToken {
        prefetch(
            urls.map(\.absoluteString), options: options, settings: settings, progress: progress,
            completed: completed)
    }
}

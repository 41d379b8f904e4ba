package import Threading

/// Combines cache, downloader and coder (SDWebImageManager): cache? -> failed? -> delegate? -> download -> verify -> store. With the
/// policies `sd3` and `sd4` the failed URLs are checked before the cache, as in SDWebImage.
///
/// Thread-safe. Blocking work runs on the manager's own threads. A cancelled call ends its transfer unless another one waits for the URL.
public final class ImageManager: ImageLoading {
    /// Settings of a manager.
    public struct Configuration: Sendable {
        /// The required validation level; default `decode`.
        public var validation = ValidationLevel.decode
        /// How to treat formats that cannot be verified; default `skip`.
        public var unverifiableFormats = UnverifiableFormats.skip
        /// The version of SDWebImage whose calls are followed; default nil.
        public var compatibility: Compatibility?
        /// Which failures are added to ``ImageManager/failedURLs``; default `smart`.
        public var failedURLPolicy = FailedURLPolicy.smart
        /// Maps the options of each load (`optionsProcessor`); default nil.
        public var optionsProcessor: (@Sendable (_ url: String, _ options: WebImageOptions) -> WebImageOptions)?
        /// Converts a downloaded image to the bytes stored on disk (`cacheSerializer`); if it is nil (default) or returns nil, the bytes
        /// are stored as they are. The result must be an image too.
        public var cacheSerializer: (@Sendable (_ image: ImageBody, _ info: ImageInfo, _ url: String) -> [UInt8]?)?
        /// Makes another image of each one, which is stored under a key of its own (`imageTransformer`,
        /// ``TransformedKey/key(_:transformerKey:)``), in the format of the original if it can be written. An original in the cache is not
        /// downloaded again. Default nil.
        public var transformer: (any ImageTransformer)?
        /// Whether the original is stored too, under its own key, if there is a ``transformer``; default false.
        public var keepsOriginalImage = false
        /// Decrypts downloaded bytes (`downloadDecryptor`); returning nil ends the load with `badImageData`. With a decryptor, bytes are
        /// not inspected before the download is complete. Default nil: no decryption.
        public var decryptor: (@Sendable (_ bytes: ImageBody, _ url: String) -> [UInt8]?)?
        /// A loader of the program's own, asked before the downloader; default nil.
        public var loader: (any ImageLoader)?
        /// Threads for verification and file calls; default 0: one per core, at least 2.
        public var threads = 0

        /// Default settings.
        public init() {}

        /// Those of a version of SDWebImage: its ``failedURLPolicy``, and what a cancelled load tells.
        public init(compatibility: Compatibility) {
            self.compatibility = compatibility
            failedURLPolicy = compatibility.failedURLPolicy
        }
    }

    private struct State {
        weak var delegate: (any ImageManagerDelegate)?
    }

    /// The images in memory and on disk.
    public let cache: ImageCache
    /// The downloader.
    public let downloader: ImageDownloader
    /// Verifies images.
    public let coder: ImageCoder
    /// The failed URLs of this process; workers keep theirs in Redis.
    public let failedURLs = FailedURLs()
    /// The settings.
    public let configuration: Configuration
    package let pool: ThreadPool
    package let pipeline: LoadPipeline
    private let running = RunningLoads()
    private let state = Locked(State())

    /// Creates a manager and its downloader, configured by `downloads`, which inspects headers in transfer and spools large bodies into the
    /// cache.
    public init(
        cache: ImageCache, downloads: ImageDownloader.Configuration = ImageDownloader.Configuration(),
        coder: ImageCoder = ImageCoder(), configuration: Configuration = Configuration()
    ) throws(WebImageError) {
        self.cache = cache
        self.coder = coder
        self.configuration = configuration
        var downloads = downloads
        let disk = cache.disk
        downloads.openTemporaryFile = { () throws(WebImageError) in try disk.temporaryFiles.open() }
        downloads.inspectHeader = { bytes throws(WebImageError) in
            try coder.inspectHeader(bytes).map { ImageHeader(arriving: $0) }
        }
        let threads = configuration.threads > 0 ? configuration.threads : max(2, Processors.count)
        let pool = ThreadPool(threads: threads, name: "verify")
        self.pool = pool
        downloads.filePool = pool
        downloads.fileCalls = disk.folder.calls
        downloader = try ImageDownloader(configuration: downloads)
        pipeline = LoadPipeline(
            cache: cache, downloader: downloader, coder: coder, decryptor: configuration.decryptor,
            loader: configuration.loader)
    }

    /// The delegate; not retained.
    public var delegate: (any ImageManagerDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { [weak newValue] in $0.delegate = newValue } }
    }

    /// Loads one image: from memory, from disk, or from the network into the cache.
    /// - Throws: why the load failed. `blackListed` without a request if the URL failed before and `retryFailed` is not set; `notCached` if
    ///   the delegate declined; `cancelled` if the task or the manager is cancelled; `localFault` for failures of this machine's disk or
    ///   network.
    public func loadImage(
        with url: String, options: WebImageOptions = []
    ) async throws(WebImageError) -> LoadedImage {
        try await loadImage(with: url, options: options, progress: nil)
    }

    /// Loads with a cookie jar.
    public func loadImage(
        with url: String, options: WebImageOptions, cookies: CookieJar
    ) async throws(WebImageError) -> LoadedImage {
        try await loadImage(with: url, options: options, cookies: cookies, progress: nil)
    }

    /// Loads and reports progress: `progress` is called like that of ``ImageDownloader``, if there is a download.
    /// * `cookies`: the jar of `handleCookies`; nil: the downloader's own, shared by all loads without one.
    /// - Returns: the image.
    /// - Throws: as ``loadImage(with:options:)``.
    public func loadImage(
        with url: String, options: WebImageOptions = [], cookies: CookieJar? = nil,
        progress: (@Sendable (_ receivedBytes: Int, _ expectedBytes: Int) -> Void)?
    ) async throws(WebImageError) -> LoadedImage {
        var image = ImageRequest(url, options: options)
        image.cookies = cookies
        return try await loadImage(image, progress: progress)
    }

    /// Loads one image with settings of its own.
    /// - Parameters:
    ///   - image: its URL and settings.
    ///   - progress: called like that of ``ImageDownloader``, if there is a download; default nil.
    /// - Returns: the image.
    /// - Throws: as ``loadImage(with:options:)``; `invalidConfiguration` for a header that cannot be sent.
    public func loadImage(
        _ image: ImageRequest, progress: (@Sendable (_ receivedBytes: Int, _ expectedBytes: Int) -> Void)? = nil
    ) async throws(WebImageError) -> LoadedImage {
        try await loadImage(image, progress: progress, willRefresh: nil)
    }

    /// * `willRefresh`: called with the cached image before it is refreshed.
    func loadImage(
        _ image: ImageRequest, progress: (@Sendable (Int, Int) -> Void)?,
        willRefresh: (@Sendable (LoadedImage) -> Void)?
    ) async throws(WebImageError) -> LoadedImage {
        let url = image.url
        guard !url.isEmpty else { throw WebImageError(.invalidURL, "the URL is empty") }
        let options = configuration.optionsProcessor?(url, image.options) ?? image.options
        let policy = configuration.failedURLPolicy
        let checksFailedURLs = policy != .none && !options.contains(.retryFailed)
        if checksFailedURLs && policy.isCheckedBeforeCache { try refuseFailed(url) }
        var request = LoadRequest(url: url, key: image.key ?? cache.key(for: url))
        request.level = configuration.validation
        request.unverifiable = configuration.unverifiableFormats
        request.options = options
        request.usesMemory = true
        request.progress = progress
        request.cookies = image.cookies
        request.headers = image.headers
        request.mirrors = image.mirrors
        request.expectedDigest = image.digest
        request.rules = HeaderRules(image.rules)
        if request.rules != nil { request.level = max(request.level, .header) }
        request.willRefresh = willRefresh
        request.transformation = transformation(of: url, options)
        if var variant = image.variant {
            if options.contains(.transformAnimatedImage) { variant.transformsAnimations = true }
            request.apply(VariantRecipe(variant))
        } else if let transformer = configuration.transformer {
            request.apply(
                VariantRecipe(
                    transformer, transformsAnimations: options.contains(.transformAnimatedImage),
                    keepsOriginal: configuration.keepsOriginalImage))
        }
        request.willUseNetwork = { [self] () throws(WebImageError) in
            if checksFailedURLs { try refuseFailed(url) }
            guard !options.contains(.fromCacheOnly) else { return }
            if delegate?.imageManager(self, shouldDownloadImageFor: url) == false {
                throw WebImageError(.notCached, "the delegate refused the download")
            }
        }
        request.didFail = { [self] error in
            guard policy != .none, error.code != .cancelled, error.code != .localFault else { return }
            let verdict =
                delegate?.imageManager(self, shouldBlockFailedURL: url, with: error)
                ?? configuration.loader?.loader(of: url)?.shouldBlockFailedURL(url, with: error)
            if verdict ?? policy.lists(error) { failedURLs.insert(url) }
        }
        let loaded = try await running.run { [self, request] () throws(WebImageError) in
            // Cancelled before the cache lookup.
            if Task.isCancelled { throw .downloadCancelled }
            let loaded = try await load(request)
            // Or while the image was checked, made or stored: it stays in the cache, and nobody is given it.
            if Task.isCancelled { throw .downloadCancelled }
            return loaded
        }
        // SDWebImage takes a URL off the list when it was downloaded.
        if options.contains(.retryFailed), !policy.isCheckedBeforeCache || loaded.outcome == .downloaded {
            failedURLs.remove(url)
        }
        return loaded
    }

    private func transformation(of url: String, _ options: WebImageOptions) -> ImageTransformation? {
        var transformation = ImageTransformation()
        if delegate != nil {
            let transformsAnimations = options.contains(.transformAnimatedImage)
            transformation.transform = { [self] body, info in
                guard let delegate, !info.isAnimated || transformsAnimations else { return body }
                return delegate.imageManager(self, transformDownloadedImage: body, info: info, for: url)
            }
        }
        if let serialize = configuration.cacheSerializer {
            transformation.serialize = { body, info in serialize(body, info, url) }
        }
        return transformation.transform == nil && transformation.serialize == nil ? nil : transformation
    }

    private func refuseFailed(_ url: String) throws(WebImageError) {
        guard failedURLs.contains(url) else { return }
        throw WebImageError(.blackListed, "the URL failed before; retryFailed asks again")
    }

    /// Loads like ``loadImage(with:options:)``, with the settings of the request only.
    package func load(_ request: LoadRequest) async throws(WebImageError) -> LoadedImage {
        try await withTaskExecutorPreference(pool) { () async throws(WebImageError) in
            try await pipeline.load(request)
        }.image
    }

    // MARK: Running loads

    /// Whether a load is running.
    public var isRunning: Bool { !running.isEmpty }

    /// Cancels every running load of ``loadImage(with:options:)``; each throws `cancelled`, unless it ends before.
    public func cancelAll() { running.cancelAll() }

    // MARK: Failed URLs

    /// Removes a URL from the blacklist.
    public func removeFailedURL(_ url: String) { failedURLs.remove(url) }

    /// Clears the blacklist.
    public func removeAllFailedURLs() { failedURLs.removeAll() }

    // MARK: Lookup

    /// Stores an image for a URL in memory and on disk, replacing an existing one (`saveImageToCache:forURL:`).
    /// - Throws: `badImageData` if it is not a valid image; `localFault`.
    public func saveImageToCache(_ data: [UInt8], for url: String) async throws(WebImageError) {
        try await cache.store(data, forKey: cacheKey(for: url))
    }

    /// The cache key of a URL.
    public func cacheKey(for url: String) -> String { cache.key(for: url) }

    /// Whether the image of a URL is in memory or on disk.
    public func cachedImageExists(for url: String) async -> Bool {
        await cache.containsImage(forKey: cacheKey(for: url)) != .none
    }

    /// Whether the image of a URL is on disk.
    public func diskImageExists(for url: String) async -> Bool {
        await cache.diskImageExists(forKey: cacheKey(for: url))
    }
}

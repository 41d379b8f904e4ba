package import Threading

/// Ties cache, downloader and coder together (SDWebImageManager): cache? -> failed? -> delegate? -> download -> verify -> store. With the
/// policies `sd3` and `sd4` the failed URLs are asked before the cache, as in the original.
///
/// Safe to use from any task. Blocking work runs on the manager's own threads. A cancelled call ends its own transfer only where
/// nobody else in the process waits for the same URL.
public final class ImageManager: ImageLoading {
    /// How a manager decides.
    public struct Configuration: Sendable {
        /// How far an image is verified before it counts, `decode` by default.
        public var validation = ValidationLevel.decode
        /// What becomes of images in formats that cannot be verified, `skip` by default.
        public var unverifiableFormats = UnverifiableFormats.skip
        /// Whether the cache's records have the SHA-256 of the bytes, true by default.
        public var computesDigest = true
        /// Which failures are remembered in ``ImageManager/failedURLs``, `smart` by default.
        public var failedURLPolicy = FailedURLPolicy.smart
        /// Makes the options of a load of those it was called with, for a URL (`optionsProcessor`); nil by default.
        public var optionsProcessor: (@Sendable (_ url: String, _ options: WebImageOptions) -> WebImageOptions)?
        /// Makes what is stored on disk of a downloaded image (`cacheSerializer`); nil from it, and nil (the default): the bytes as they
        /// are. What it makes has to be an image too: a cache has nothing else.
        public var cacheSerializer: (@Sendable (_ image: ImageBody, _ info: ImageInfo, _ url: String) -> [UInt8]?)?
        /// Makes an image of the bytes that came, where they are not one yet (`downloadDecryptor`); nil from it ends the load with
        /// `badImageData`. Nothing is looked at before all bytes are there. nil (the default): they are the image.
        public var decryptor: (@Sendable (_ bytes: ImageBody, _ url: String) -> [UInt8]?)?
        /// Threads for verification and file calls; 0 (the default): one for each core, at least 2.
        public var threads = 0

        /// The defaults.
        public init() {}
    }

    private struct State {
        weak var delegate: (any ImageManagerDelegate)?
    }

    /// The images in memory and on disk.
    public let cache: ImageCache
    /// Where images come from.
    public let downloader: ImageDownloader
    /// What tells whether bytes are a whole image.
    public let coder: ImageCoder
    /// The failed URLs of this process; workers keep theirs in Redis.
    public let failedURLs = FailedURLs()
    /// How it decides.
    public let configuration: Configuration
    package let pool: ThreadPool
    /// What a load does, step by step.
    package let pipeline: LoadPipeline
    private let running = RunningLoads()
    private let state = Locked(State())

    /// A manager over a cache of its own and a downloader with `downloads`' settings, which is told to check headers as they come
    /// and to spool large bodies into the cache.
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
        downloads.inspectHeader = { bytes throws(WebImageError) in try coder.inspectHeader(bytes) }
        let threads = configuration.threads > 0 ? configuration.threads : max(2, Processors.count)
        let pool = ThreadPool(threads: threads, name: "verify")
        self.pool = pool
        downloads.filePool = pool
        downloads.fileCalls = disk.folder.calls
        downloader = try ImageDownloader(configuration: downloads)
        pipeline = LoadPipeline(cache: cache, downloader: downloader, coder: coder, decryptor: configuration.decryptor)
    }

    /// Who decides what is downloaded and which failures are remembered; not retained.
    public var delegate: (any ImageManagerDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { [weak newValue] in $0.delegate = newValue } }
    }

    /// Loads one image: from memory, from the disk, or from the network into the cache.
    /// - Throws: why there is none. `blackListed` without a request where the URL failed before and `retryFailed` is not given;
    ///   `notCached` where the delegate said no; `cancelled` where the task or the manager is cancelled; `localFault` where the disk or the
    ///   network of this machine is at fault.
    public func loadImage(
        with url: String, options: WebImageOptions = []
    ) async throws(WebImageError) -> LoadedImage {
        try await loadImage(with: url, options: options, progress: nil)
    }

    /// The same, with its cookies in a jar.
    public func loadImage(
        with url: String, options: WebImageOptions, cookies: CookieJar
    ) async throws(WebImageError) -> LoadedImage {
        try await loadImage(with: url, options: options, cookies: cookies, progress: nil)
    }

    /// The same, and tells of the bytes while they come: `progress` is called as by ``ImageDownloader``, where there is a download.
    /// * `cookies`: the jar of `handleCookies`; nil: the downloader's own, as of every load without one.
    /// - Returns: the image.
    /// - Throws: as ``loadImage(with:options:)``.
    public func loadImage(
        with url: String, options: WebImageOptions = [], cookies: CookieJar? = nil,
        progress: (@Sendable (_ receivedBytes: Int, _ expectedBytes: Int) -> Void)?
    ) async throws(WebImageError) -> LoadedImage {
        let options = configuration.optionsProcessor?(url, options) ?? options
        let policy = configuration.failedURLPolicy
        let asksFailed = policy != .none && !options.contains(.retryFailed)
        if asksFailed && policy.asksBeforeCache { try refuseFailed(url) }
        var request = LoadRequest(url: url, key: cache.key(for: url))
        request.level = configuration.validation
        request.unverifiable = configuration.unverifiableFormats
        request.computesDigest = configuration.computesDigest
        request.options = options
        request.usesMemory = true
        request.progress = progress
        request.cookies = cookies
        request.rework = rework(of: url)
        request.willLeaveCache = { [self] () throws(WebImageError) in
            if asksFailed { try refuseFailed(url) }
            guard !options.contains(.fromCacheOnly) else { return }
            if delegate?.imageManager(self, shouldDownloadImageFor: url) == false {
                throw WebImageError(.notCached, "not in the cache, and the delegate refused the download")
            }
        }
        request.didFail = { [self] error in
            guard policy != .none, error.code != .cancelled, error.code != .localFault else { return }
            let verdict = delegate?.imageManager(self, shouldBlockFailedURL: url, with: error)
            if verdict ?? policy.lists(error) { failedURLs.insert(url) }
        }
        let image = try await running.run { [self, request] () throws(WebImageError) in
            // Cancelled before the cache was asked.
            if Task.isCancelled { throw .downloadCancelled }
            return try await load(request)
        }
        if options.contains(.retryFailed) { failedURLs.remove(url) }
        return image
    }

    /// What the delegate and the serializer make of an image; nil where there are none.
    private func rework(of url: String) -> ImageRework? {
        var rework = ImageRework()
        if delegate != nil {
            rework.transform = { [self] body, info in
                delegate?.imageManager(self, transformDownloadedImage: body, info: info, for: url)
            }
        }
        if let serialize = configuration.cacheSerializer {
            rework.serialize = { body, info in serialize(body, info, url) }
        }
        return rework.transform == nil && rework.serialize == nil ? nil : rework
    }

    private func refuseFailed(_ url: String) throws(WebImageError) {
        guard failedURLs.contains(url) else { return }
        throw WebImageError(.blackListed, "the URL failed before; retryFailed asks again")
    }

    /// Loads as ``loadImage(with:options:)`` does, by what the request says alone.
    package func load(_ request: LoadRequest) async throws(WebImageError) -> LoadedImage {
        try await withTaskExecutorPreference(pool) { () async throws(WebImageError) in
            try await pipeline.load(request)
        }
    }

    // MARK: Loads under way

    /// Whether a load has begun that has not ended.
    public var isRunning: Bool { !running.isEmpty }

    /// Cancels every load of ``loadImage(with:options:)`` that has not ended; each throws `cancelled`, unless it is over by then.
    public func cancelAll() { running.cancelAll() }

    // MARK: Failed URLs

    /// Takes a URL off the list of failed ones.
    public func removeFailedURL(_ url: String) { failedURLs.remove(url) }

    /// Takes every URL off the list of failed ones.
    public func removeAllFailedURLs() { failedURLs.removeAll() }

    // MARK: What is there

    /// Stores an image under the key of a URL, in memory and on disk, in place of what is there (`saveImageToCache:forURL:`).
    /// - Throws: `badImageData` where it is no whole image; `localFault`.
    public func saveImageToCache(_ data: [UInt8], for url: String) async throws(WebImageError) {
        try await cache.store(data, forKey: cacheKey(for: url))
    }

    /// The key of a URL in the cache.
    public func cacheKey(for url: String) -> String { cache.key(for: url) }

    /// Whether the image of a URL is in memory or on disk.
    public func cachedImageExists(for url: String) async -> Bool {
        await cache.containsImage(forKey: cacheKey(for: url)) != .none
    }

    /// Whether the image of a URL is on disk.
    public func diskImageExists(for url: String) async -> Bool {
        await cache.diskImageExists(forKey: cacheKey(for: url))
    }

    /// Whether the disk has an image that passed at least this level. In a directory a file call: microseconds.
    package func hasCached(key: String, atLeast level: ValidationLevel) -> Bool {
        // A cache that cannot be read now is asked again, and complains, when the image is to be stored.
        (try? cache.has(key, atLeast: level)) ?? false
    }
}

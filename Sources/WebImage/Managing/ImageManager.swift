package import Threading

/// Ties cache, downloader and coder together (SDWebImageManager): cache? -> failed? -> download -> verify -> store.
///
/// Safe to use from any task. Blocking work runs on the manager's own threads. A cancelled call ends its own transfer only where
/// nobody else in the process waits for the same URL.
public final class ImageManager: ImageLoading {
    /// How a manager decides.
    public struct Configuration: Sendable {
        /// How far an image is verified before it counts, `decode` by default.
        public var validation = ValidationLevel.decode
        /// Whether the cache's records have the SHA-256 of the bytes, true by default.
        public var computesDigest = true
        /// Which failures are remembered in ``ImageManager/failedURLs``, `smart` by default.
        public var failedURLPolicy = FailedURLPolicy.smart
        /// Threads for verification and file calls; 0 (the default): one for each core, at least 2.
        public var threads = 0

        /// The defaults.
        public init() {}
    }

    /// The images on disk.
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
        downloads.openTemporaryFile = { () throws(WebImageError) in try disk.openTemporaryFile() }
        downloads.inspectHeader = { bytes throws(WebImageError) in try coder.inspectHeader(bytes) }
        downloader = try ImageDownloader(configuration: downloads)
        let threads = configuration.threads > 0 ? configuration.threads : max(2, Processors.count)
        pool = ThreadPool(threads: threads, name: "verify")
    }

    /// Loads one image: from the cache, or from the network into the cache.
    /// - Throws: why there is none. `blackListed` without a request where the URL failed before and `retryFailed` is not given;
    ///   `cancelled` where the task is cancelled; `localFault` where the disk or the network of this machine is at fault.
    public func loadImage(
        with url: String, options: WebImageOptions = []
    ) async throws(WebImageError) -> LoadedImage {
        var request = LoadRequest(url: url, key: cache.key(for: url))
        request.level = configuration.validation
        request.computesDigest = configuration.computesDigest
        request.isFromCacheOnly = options.contains(.fromCacheOnly)
        let policy = configuration.failedURLPolicy
        let isListed = policy != .none && !options.contains(.retryFailed) && failedURLs.contains(url)
        if isListed && !(!policy.asksBeforeCache && hasCached(key: request.key, atLeast: request.level)) {
            throw WebImageError(.blackListed, "the URL failed before; retryFailed asks again")
        }
        do {
            let image = try await load(request)
            if options.contains(.retryFailed) { failedURLs.remove(url) }
            return image
        } catch {
            if policy.lists(error) { failedURLs.insert(url) }
            throw error
        }
    }

    /// Whether the cache has an image that passed at least this level. A file call: microseconds.
    package func hasCached(key: String, atLeast level: ValidationLevel) -> Bool {
        // A cache that cannot be read now is asked again, and complains, when the image is to be stored.
        guard let entry = try? cache.disk.lookup(CacheKey(key), atLeast: level) else { return false }
        return !entry.needsVerification
    }

    /// Loads as ``loadImage(with:options:)`` does, without asking which URLs failed.
    package func load(_ request: LoadRequest) async throws(WebImageError) -> LoadedImage {
        try await withTaskExecutorPreference(pool) { () async throws(WebImageError) in try await loadOnPool(request) }
    }

    /// The same for a task that prefers this manager's pool already.
    package func loadOnPool(_ request: LoadRequest) async throws(WebImageError) -> LoadedImage {
        let key = CacheKey(request.key)
        if request.isFromCacheOnly {
            if let image = try cached(key, request) { return image }
            throw WebImageError(.notCached, "not in the cache, and the network was not to be asked")
        }
        let transfer = try await cache.transfers.acquire(key)
        defer { transfer.release() }
        // Whoever waited here most often finds it in the cache now.
        if let image = try cached(key, request) { return image }
        return try await fetch(key, request)
    }

    /// The cached image where it is good enough; one that passed less is verified now, and raised or moved aside.
    private func cached(_ key: CacheKey, _ request: LoadRequest) throws(WebImageError) -> LoadedImage? {
        guard let entry = try cache.disk.lookup(key, atLeast: request.level) else { return nil }
        if !entry.needsVerification, let record = entry.record {
            let info = ImageInfo(
                format: record.format, width: record.width, height: record.height, level: record.level)
            return image(request, entry.path, info, entry.size, record.digest, cacheType: .disk, outcome: .hit)
        }
        let bytes = try entry.bytes()
        let info: ImageInfo
        do throws(WebImageError) {
            info = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                try coder.verify(bytes, level: request.level)
            }
        } catch {
            if error.code == .localFault { throw error }
            cache.disk.moveAside(entry)
            return nil
        }
        _ = try cache.disk.raise(entry, to: info)
        let digest = request.computesDigest ? SHA256.hash(bytes) : nil
        return image(request, entry.path, info, bytes.count, digest, cacheType: .disk, outcome: .hit)
    }

    private func fetch(_ key: CacheKey, _ request: LoadRequest) async throws(WebImageError) -> LoadedImage {
        var attempts = 0
        while true {
            let options: DownloadOptions = request.level == .none ? .uninspected : []
            let download = try await downloader.download(request.url, options: options, attemptsUsed: attempts)
            attempts = download.attempts
            if let willDecode = request.willDecode { await willDecode() }
            do throws(WebImageError) {
                return try await store(download, key, request)
            } catch {
                guard error.code == .badImageData else { throw error }
                var error = error
                error.attempts = attempts
                error.httpStatus = download.statusCode
                guard error.isIncompleteImage && !download.lengthWasAnnounced else { throw error }
                // The connection's end was the only end the body had: it was cut, and another try may bring all of it.
                guard attempts < downloader.configuration.maxAttempts else {
                    error.code = .connectionLost
                    throw error
                }
            }
        }
    }

    private func store(
        _ download: DownloadedImage, _ key: CacheKey, _ request: LoadRequest
    ) async throws(WebImageError) -> LoadedImage {
        let computesDigest = request.computesDigest
        let (info, digest) = try download.body.withUnsafeBytes { bytes throws(WebImageError) in
            let info = try coder.verify(bytes, level: request.level)
            return (info, computesDigest ? SHA256.hash(bytes) : nil)
        }
        let record = CacheRecord(info, length: download.body.count, digest: digest, storedAt: WallClock.seconds)
        let validators = HTTPValidators(etag: download.eTag, lastModified: download.lastModified, key: request.key)
        try cache.disk.store(download.body, for: key, record: record, validators: validators)
        if request.isDurable { try cache.disk.sync() }
        var loaded = image(
            request, cache.disk.cachePath(forKey: request.key), info, download.body.count, digest, cacheType: .none,
            outcome: .downloaded)
        loaded.httpStatus = download.statusCode
        loaded.attempts = download.attempts
        return loaded
    }

    private func image(
        _ request: LoadRequest, _ path: String, _ info: ImageInfo, _ size: Int, _ digest: Digest?,
        cacheType: ImageCacheType, outcome: PrefetchOutcome
    ) -> LoadedImage {
        LoadedImage(
            url: request.url, key: request.key, path: path, info: info, byteCount: size, sha256: digest?.bytes,
            cacheType: cacheType, outcome: outcome, httpStatus: nil, attempts: 0, details: info.warnings)
    }
}

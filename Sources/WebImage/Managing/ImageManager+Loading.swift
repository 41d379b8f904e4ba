internal import Threading

// One URL from request to outcome.
extension ImageManager {
    /// Loads as ``loadImage(with:options:)`` does, by what the request says alone.
    package func load(_ request: LoadRequest) async throws(WebImageError) -> LoadedImage {
        try await withTaskExecutorPreference(pool) { () async throws(WebImageError) in try await loadOnPool(request) }
    }

    /// The same for a task that prefers this manager's pool already.
    package func loadOnPool(_ request: LoadRequest) async throws(WebImageError) -> LoadedImage {
        let key = CacheKey(request.key)
        if let image = inMemory(request) { return image }
        if request.isFromCacheOnly {
            if let image = try onDisk(key, request) { return image }
            try request.willLeaveCache?()
            throw WebImageError(.notCached, "not in the cache, and the network was not to be asked")
        }
        let transfer = try await cache.transfers.acquire(key)
        defer { transfer.release() }
        // Whoever waited here most often finds it in the cache now.
        if let image = inMemory(request) { return image }
        if let image = try onDisk(key, request) { return image }
        try request.willLeaveCache?()
        do throws(WebImageError) {
            return try await fetch(key, request)
        } catch {
            request.didFail?(error)
            throw error
        }
    }

    /// The image in memory where it is good enough. Its path is that of its file, if there still is one.
    private func inMemory(_ request: LoadRequest) -> LoadedImage? {
        guard request.usesMemory, let found = cache.memory?.image(forKey: request.key),
            found.info.level >= request.level
        else { return nil }
        let isOnDisk = cache.disk.containsData(forKey: request.key)
        let digest = found.digest ?? (request.computesDigest ? SHA256.hash(found.bytes) : nil)
        return image(
            request, isOnDisk ? cache.disk.cachePath(forKey: request.key) : nil, found.info, found.bytes.count, digest,
            cacheType: .memory, outcome: .hit)
    }

    /// The image on disk where it is good enough; one that passed less is verified now, and raised or moved aside.
    private func onDisk(_ key: CacheKey, _ request: LoadRequest) throws(WebImageError) -> LoadedImage? {
        let removals = memoryRemovals(request)
        guard let found = try cache.find(key, atLeast: request.level, coder: coder) else { return nil }
        let digest =
            if let bytes = found.bytes { request.computesDigest ? SHA256.hash(bytes) : nil } else {
                found.entry.record?.digest
            }
        if let removals, let memory = cache.memory, memory.accepts(cost: found.entry.size) {
            // A file that was cut short this very moment is no hit.
            guard let read = try cache.memoryImage(of: found) else { return nil }
            memory.offer(read, forKey: request.key, removals: removals)
        }
        return image(
            request, found.entry.path, found.info, found.entry.size, digest, cacheType: .disk, outcome: .hit)
    }

    private func fetch(_ key: CacheKey, _ request: LoadRequest) async throws(WebImageError) -> LoadedImage {
        var attempts = 0
        while true {
            var options: DownloadOptions = request.level == .none ? .uninspected : []
            if !cache.disk.configuration.keepsHTTPValidators { options.insert(.bodyOnly) }
            let download = try await downloader.download(
                request.url, options: options, attemptsUsed: attempts, permit: request.permit)
            attempts = download.attempts
            if let willDecode = request.willDecode { await willDecode() }
            do throws(WebImageError) {
                return try store(download, key, request)
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
    ) throws(WebImageError) -> LoadedImage {
        let (computesDigest, count) = (request.computesDigest, download.body.count)
        let removals = memoryRemovals(request)
        let goesToMemory = removals != nil && cache.memory?.accepts(cost: count) == true
        let (info, digest, copy) = try download.body.withUnsafeBytes { bytes throws(WebImageError) in
            let info = try coder.verify(bytes, level: request.level)
            return (info, computesDigest ? SHA256.hash(bytes) : nil, goesToMemory ? Array(bytes) : nil)
        }
        let record = CacheRecord(info, length: count, digest: digest, storedAt: WallClock.seconds)
        let validators = HTTPValidators(etag: download.eTag, lastModified: download.lastModified, key: request.key)
        try cache.disk.storeBesideClearing(download.body, for: key, record: record, validators: validators)
        if request.isDurable { try cache.disk.sync() }
        if let copy, let removals {
            // Only now: what could not be stored is to be tried again, not to be a hit.
            cache.memory?.offer(
                MemoryImage(bytes: copy, info: info, digest: digest), forKey: request.key, removals: removals)
        }
        var loaded = image(
            request, cache.disk.cachePath(of: key), info, count, digest, cacheType: .none,
            outcome: .downloaded)
        loaded.httpStatus = download.statusCode
        loaded.attempts = download.attempts
        return loaded
    }

    /// What an offer to the memory cache has to name; nil where the request has no use for it.
    private func memoryRemovals(_ request: LoadRequest) -> Int? { request.usesMemory ? cache.memory?.removals : nil }

    private func image(
        _ request: LoadRequest, _ path: String?, _ info: ImageInfo, _ size: Int, _ digest: Digest?,
        cacheType: ImageCacheType, outcome: PrefetchOutcome
    ) -> LoadedImage {
        LoadedImage(
            url: request.url, key: request.key, path: path, info: info, byteCount: size, sha256: digest?.bytes,
            cacheType: cacheType, outcome: outcome, httpStatus: nil, attempts: 0, details: info.warnings)
    }
}

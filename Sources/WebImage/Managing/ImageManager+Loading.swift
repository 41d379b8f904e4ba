internal import Threading

// One URL from request to outcome.
extension ImageManager {
    /// Loads as ``loadImage(with:options:)`` does, by what the request says alone.
    package func load(_ request: LoadRequest) async throws(WebImageError) -> LoadedImage {
        try await withTaskExecutorPreference(pool) { () async throws(WebImageError) in try await loadOnPool(request) }
    }

    /// The same for a task that prefers this manager's pool already.
    /// It goes on where its caller is: each change of the executor would cost a lock.
    package nonisolated(nonsending) func loadOnPool(_ request: LoadRequest) async throws(WebImageError) -> LoadedImage {
        let key = CacheKey(request.key)
        if request.questionsHits { return try await loadQuestioningHits(key, request) }
        if let image = inMemory(request) { return image }
        if request.isFromCacheOnly {
            if let image = try onDisk(request) { return image }
            try request.willLeaveCache?()
            throw WebImageError(.notCached, "not in the cache, and the network was not to be asked")
        }
        let transfer = try await transfer(of: key)
        defer { transfer.release() }
        // Whoever waited here most often finds it in the cache now.
        if let image = inMemory(request) { return image }
        if let image = try onDisk(request) { return image }
        try request.willLeaveCache?()
        do throws(WebImageError) {
            return request.mirrors.isEmpty
                ? try await fetch(from: request.url, key, request) : try await fetchFromMirrors(key, request)
        } catch {
            request.didFail?(error)
            throw error
        }
    }

    /// The right to transfer an image; waits where somebody else transfers it.
    nonisolated(nonsending) func transfer(of key: CacheKey) async throws(WebImageError) -> Transfer {
        if let transfer = try cache.transfers.tryAcquire(key) { return transfer }
        return try await cache.transfers.acquire(key)
    }

    /// The image in memory where it is good enough. Its path is that of its file, if there still is one.
    func inMemory(_ request: LoadRequest) -> LoadedImage? {
        guard request.usesMemory, let found = cache.memory?.image(forKey: request.key),
            isEnough(found.info, request)
        else { return nil }
        let digest = found.digest ?? (request.computesDigest ? SHA256.hash(found.bytes) : nil)
        return image(
            request, cache.existingPath(forKey: request.key), found.info, found.bytes.count, digest,
            cacheType: .memory, outcome: .hit)
    }

    /// The image on disk where it is good enough; one that passed less is verified now, and raised or moved aside.
    private func onDisk(_ request: LoadRequest) throws(WebImageError) -> LoadedImage? {
        let removals = memoryRemovals(request)
        guard let found = try find(request) else { return nil }
        let digest =
            if let bytes = found.bytes { request.computesDigest ? SHA256.hash(bytes) : nil } else {
                found.record?.digest
            }
        if let removals, let memory = cache.memory, memory.accepts(cost: found.size) {
            // A file that was cut short this very moment is no hit.
            guard let read = try cache.memoryImage(of: found, request.key) else { return nil }
            memory.offer(read, forKey: request.key, removals: removals)
        }
        return image(
            request, found.path, found.info, found.size, digest, cacheType: .disk, outcome: .hit)
    }

    /// * `present`: what the cache has, where its bytes are asked for only if they have changed.
    nonisolated(nonsending) func fetch(
        from url: String, _ key: CacheKey, _ request: LoadRequest,
        present: (found: FoundImage, known: HTTPValidators)? = nil
    ) async throws(WebImageError) -> LoadedImage {
        var attempts = 0
        while true {
            var options: DownloadOptions = request.level == .none ? .uninspected : []
            if !cache.disk.configuration.keepsHTTPValidators && !request.options.keepsValidators {
                options.insert(.bodyOnly)
            }
            if !request.options.isEmpty {
                options.formUnion(request.options.ofDownload)
                if options.contains(.progressive) { options.remove(.uninspected) }
            }
            if configuration.decryptor != nil { options.insert(.uninspected) }
            var headers = request.headers
            if let present {
                headers += present.known.conditions
                options.insert(.conditional)
            }
            let download = try await downloader.download(
                url, options: options, headers: headers, attemptsUsed: attempts, cookies: request.cookies,
                maxConnectionsPerHost: request.maxConnectionsPerHost, permit: request.permit, progress: request.progress
            )
            attempts = download.attempts
            if download.statusCode == 304, let present {
                if let image = try notModified(present.found, present.known, download, key, request) { return image }
                // Somebody has removed it meanwhile: all of it is wanted then.
                return try await fetch(from: url, key, request)
            }
            if let willStore = request.willStore { await willStore() }
            do throws(WebImageError) {
                return try await storeInTurn(try opened(download, of: url), key, request)
            } catch {
                guard [.badImageData, .unsupportedFormat, .tooLarge].contains(error.code) else { throw error }
                var error = error
                error.attempts = attempts
                error.httpStatus = download.statusCode
                guard error.isIncompleteImage && !download.lengthWasAnnounced else { throw error }
                // The connection's end was the only end the body had: it was cut, and another try may bring all of it.
                guard attempts < (await downloader.configuration.maxAttempts) else {
                    error.code = .connectionLost
                    throw error
                }
            }
        }
    }

    /// Stores beside others, or while no other image is decoded.
    private nonisolated(nonsending) func storeInTurn(
        _ download: DownloadedImage, _ key: CacheKey, _ request: LoadRequest
    ) async throws(WebImageError) -> LoadedImage {
        let tellAlone = request.decodesAlone
        await turns.begin(alone: tellAlone != nil)
        await tellAlone?(true)
        let stored = Result { () throws(WebImageError) in try store(download, key, request) }
        await tellAlone?(false)
        turns.end()
        return try stored.get()
    }

    private func store(
        _ download: DownloadedImage, _ key: CacheKey, _ request: LoadRequest
    ) throws(WebImageError) -> LoadedImage {
        if request.storesSpecially { return try storeSpecially(download, key, request) }
        let (computesDigest, count) = (request.computesDigest, download.body.count)
        let removals = memoryRemovals(request)
        let goesToMemory = removals != nil && cache.memory?.accepts(cost: count) == true
        let (info, digest, copy) = try download.body.withUnsafeBytes { bytes throws(WebImageError) in
            let info = try verified(bytes, request)
            return (info, computesDigest ? SHA256.hash(bytes) : nil, goesToMemory ? Array(bytes) : nil)
        }
        let record = CacheRecord(info, length: count, digest: digest, storedAt: WallClock.seconds)
        try cache.publish(
            download.body, record, keptValidators(download, request), for: key, forKey: request.key,
            replacing: request.questionsHits, keepsValidators: request.options.keepsValidators)
        if request.isDurable { try cache.sync() }
        if let copy, let removals {
            // Only now: what could not be stored is to be tried again, not to be a hit.
            keepInMemory(MemoryImage(bytes: copy, info: info, digest: digest), request, removals: removals)
        }
        var loaded = image(
            request, request.wantsPath ? cache.publishedPath(key, forKey: request.key) : nil, info, count, digest,
            cacheType: .none, outcome: .downloaded)
        loaded.httpStatus = download.statusCode
        loaded.attempts = download.attempts
        loaded.timing = download.timing
        return loaded
    }

    /// Checks bytes as the request asks.
    func verified(_ bytes: UnsafeRawBufferPointer, _ request: LoadRequest) throws(WebImageError) -> ImageInfo {
        try coder.verify(bytes, level: request.level, unverifiable: request.unverifiable)
    }

    /// What the disk has, good enough for the request.
    func find(_ request: LoadRequest) throws(WebImageError) -> FoundImage? {
        try cache.find(request.key, atLeast: request.level, unverifiable: request.unverifiable, coder: coder)
    }

    /// Whether an image that was verified so far will do: one whose format cannot be verified further, where such are kept.
    private func isEnough(_ info: ImageInfo, _ request: LoadRequest) -> Bool {
        info.level >= request.level
            || request.unverifiable == .keep && !info.format.isVerifiable && info.level >= .header
    }

    /// What an offer to the memory cache has to name; nil where the request has no use for it.
    func memoryRemovals(_ request: LoadRequest) -> Int? { request.usesMemory ? cache.memory?.removals : nil }

    func image(
        _ request: LoadRequest, _ path: String?, _ info: ImageInfo, _ size: Int, _ digest: Digest?,
        cacheType: ImageCacheType, outcome: PrefetchOutcome
    ) -> LoadedImage {
        LoadedImage(
            url: request.url, key: request.key, path: path, info: info, byteCount: size, sha256: digest?.bytes,
            cacheType: cacheType, outcome: outcome, httpStatus: nil, attempts: 0, details: info.warnings)
    }
}

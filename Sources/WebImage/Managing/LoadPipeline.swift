internal import Threading

/// The steps of a load, in order: memory, disk, transfer lock, both again, network, verification, cache. Thread-safe. A load stays on its
/// caller's executor, whose threads must be allowed to block: each change of executor would cost a lock.
///
/// What does not wait is not inlined: the variables of an asynchronous function are on the heap until it returns, and hundreds of loads wait.
package final class LoadPipeline: Sendable {
    private let cache: ImageCache
    private let disk: DiskCache
    private let downloader: ImageDownloader
    private let coder: ImageCoder
    private let decryptor: (@Sendable (_ bytes: ImageBody, _ url: String) -> [UInt8]?)?
    private let loader: (any ImageLoader)?
    private let turns = DecodeLock()
    private let shared = SharedDownloads()
    private let failures = SharedFailures()

    init(
        cache: ImageCache, downloader: ImageDownloader, coder: ImageCoder,
        decryptor: (@Sendable (_ bytes: ImageBody, _ url: String) -> [UInt8]?)?, loader: (any ImageLoader)?
    ) {
        (self.cache, disk, self.downloader, self.loader) = (cache, cache.disk, downloader, loader)
        self.coder = coder
        self.decryptor = decryptor
    }

    /// Loads one image with the settings of the request only.
    /// - Throws: as ``ImageManager/loadImage(with:options:)``.
    package nonisolated(nonsending) func load(_ request: LoadRequest) async throws(WebImageError) -> LoadResult {
        let key = CacheKey(request.key)
        if request.revalidatesHits { return try await loadRevalidating(key, request) }
        if let image = inMemory(request) { return image }
        if request.isFromCacheOnly {
            if let image = try await turns.lookUp(request, { () throws(WebImageError) in try onDisk(key, request) }) {
                return image
            }
            if request.variant != nil, let image = try await fromOriginal(request) { return image }
            try request.willUseNetwork?()
            throw WebImageError(.notCached, "not in the cache, and the network was not to be asked")
        }
        let began = ContinuousClock.now
        let (transfer, follower) = try await shared.transfer(of: key, request, cache.transfers)
        defer { transfer.release() }
        // After waiting, it is usually in the cache.
        if let image = inMemory(request) { return image.served(to: follower) }
        if let image = try await turns.lookUp(request, { () throws(WebImageError) in try onDisk(key, request) }) {
            return image.served(to: follower)
        }
        if request.variant != nil, let image = try await fromOriginal(request) { return image }
        try await failures.take(key, request, transfer, since: began)
        try request.willUseNetwork?()
        guard request.usesMemory else { return try await download(key, request) }
        return try await shared.lead(key, request) { request async throws(WebImageError) in
            try await download(key, request)
        }
    }

    private nonisolated(nonsending) func download(
        _ key: CacheKey, _ request: LoadRequest
    ) async throws(WebImageError) -> LoadResult {
        do throws(WebImageError) {
            return request.mirrors.isEmpty
                ? try await fetch(from: request.url, key, request) : try await fetchFromMirrors(key, request)
        } catch {
            await failures.tell(error, key, request, cache.transfers)
            throw error
        }
    }

    private nonisolated(nonsending) func loadRevalidating(
        _ key: CacheKey, _ request: LoadRequest
    ) async throws(WebImageError) -> LoadResult {
        if request.isFromCacheOnly {
            if let found = try await turns.lookUp(
                request, { () throws(WebImageError) in try revalidatedHit(key, request) })
            {
                return try hit(found, request)
            }
            try request.willUseNetwork?()
            if let expected = request.expectedDigest,
                let actual = try disk.find(forKey: request.key, named: key, atLeast: .none)?.knownDigest(),
                actual != expected
            {
                throw WebImageError(
                    .digestMismatch, "the SHA-256 in the cache is \(actual.hex), and was to be \(expected.hex)")
            }
            throw WebImageError(.notCached, "not in the cache, and the network was not to be asked")
        }
        let began = ContinuousClock.now
        let transfer = try await transfer(of: key)
        defer { transfer.release() }
        let found = try await turns.lookUp(
            request, { () throws(WebImageError) in try revalidatedHit(key, request) })
        let known = found.flatMap { disk.images.validators(of: $0.entry) }
        if let found, !request.options.refreshes || isFresh(known, request) { return try hit(found, request) }
        do throws(WebImageError) { try request.willUseNetwork?() } catch {
            guard let found else { throw error }
            return try hit(found, request).kept(error)
        }
        try await failures.take(key, request, transfer, since: began)
        if let found, let willRefresh = request.willRefresh, request.options.refreshes {
            willRefresh(try hit(found, request).image)
        }
        do throws(WebImageError) {
            let present = PresentImage(found, known)
            return request.mirrors.isEmpty
                ? try await fetch(from: request.url, key, request, present: present)
                : try await fetchFromMirrors(key, request, present: present)
        } catch {
            // A rule of ours or of its site is no failure of the image that is there.
            if let found, error.code == .refused { return try hit(found, request).kept(error) }
            await failures.tell(error, key, request, cache.transfers)
            throw error
        }
    }

    /// Acquires the transfer lock of an image; waits while it is being transferred elsewhere.
    private nonisolated(nonsending) func transfer(of key: CacheKey) async throws(WebImageError) -> Transfer {
        if let transfer = try cache.transfers.tryAcquire(key) { return transfer }
        return try await cache.transfers.acquire(key)
    }

    // MARK: Lookup

    /// The image in memory if its level suffices. Its path is that of its file, if it still exists.
    @inline(never)
    private func inMemory(_ request: LoadRequest) -> LoadResult? {
        guard request.usesMemory, let found = cache.memory?.image(forKey: request.key),
            isEnough(found.info, request)
        else { return nil }
        let digest = found.digest ?? (request.computesDigest ? SHA256.hash(found.bytes) : nil)
        return LoadResult(
            LoadedImage(
                request, disk.existingPath(forKey: request.key), found.info, found.bytes.count, digest,
                bytes: found.bytes, cacheType: .memory, outcome: .hit))
    }

    /// The image on disk if its level suffices; a lower one is verified now, and raised or moved aside.
    @inline(never)
    private func onDisk(_ key: CacheKey, _ request: LoadRequest) throws(WebImageError) -> LoadResult? {
        let removals = memoryRemovals(request)
        guard let found = try find(key, request) else { return nil }
        try request.judge(found.info, madeOf: found.entry.record?.original)
        let digest =
            if let bytes = found.bytes { request.computesDigest ? SHA256.hash(bytes) : nil } else {
                found.entry.record?.digest
            }
        if let removals, let memory = cache.memory, memory.accepts(cost: found.entry.size) {
            // A file truncated just now is not a hit.
            guard let read = try cache.memoryImage(of: found) else { return nil }
            memory.offer(read, forKey: request.key, removals: removals)
        }
        return LoadResult(
            LoadedImage(
                request, found.entry.path, found.info, found.entry.size, digest, cacheType: .disk, outcome: .hit))
    }

    /// The variant, made of the original on disk, and stored. An original that is damaged, or not the expected one, is fetched again.
    private nonisolated(nonsending) func fromOriginal(
        _ request: LoadRequest
    ) async throws(WebImageError) -> LoadResult? {
        try await turns.run(request) { () throws(WebImageError) in try storeFromOriginal(request) }
    }

    @inline(never)
    private func storeFromOriginal(_ request: LoadRequest) throws(WebImageError) -> LoadResult? {
        guard let variant = request.variant,
            let found = try cache.find(
                request.originalKey, atLeast: request.level, unverifiable: request.unverifiable, coder: coder)
        else { return nil }
        let original = ImageBody(try found.read())
        if let expected = request.expectedDigest, try original.digest != expected { return nil }
        try request.judge(found.info)
        let (body, info): (ImageBody, ImageInfo)
        do throws(WebImageError) {
            (body, info) = try made(variant, of: original, found.info, request)
        } catch {
            guard error.code == .badImageData else { throw error }
            return nil
        }
        let digest = request.computesDigest ? try body.digest : nil
        if !request.options.contains(.cacheMemoryOnly) {
            let record = CacheRecord(
                info, original: OriginalImage(found.info), length: body.count, digest: digest,
                storedAt: WallClock.seconds)
            try disk.images.store(body, for: CacheKey(request.key), record: record)
            if request.isDurable { try disk.sync() }
        }
        return LoadResult(
            LoadedImage(
                request, disk.existingPath(forKey: request.key), info, body.count, digest, cacheType: .disk,
                outcome: .hit))
    }

    /// The bytes of a variant, verified; those of the original if there is nothing to change.
    @inline(never)
    private func made(
        _ variant: VariantRecipe, of body: ImageBody, _ info: ImageInfo, _ request: LoadRequest
    ) throws(WebImageError) -> (ImageBody, ImageInfo) {
        let known = info.level >= .structure ? info : try verified(body, request, level: .structure)
        let bytes = try body.withUnsafeBytes { bytes throws(WebImageError) in
            try variant.bytes(of: bytes, known, key: request.originalKey, coder: coder)
        }
        guard let bytes else { return (body, info.level < request.level ? try verified(body, request) : info) }
        let made = ImageBody(bytes)
        return (made, try verified(made, request))
    }

    private func find(_ key: CacheKey, _ request: LoadRequest) throws(WebImageError) -> FoundImage? {
        try cache.find(
            request.key, named: key, atLeast: request.level, unverifiable: request.unverifiable, coder: coder)
    }

    /// The image on disk if its bytes are the expected ones; a corrupted file is moved aside.
    @inline(never)
    private func revalidatedHit(_ key: CacheKey, _ request: LoadRequest) throws(WebImageError) -> FoundImage? {
        guard let found = try find(key, request) else { return nil }
        var digest = found.entry.record?.digest
        if request.options.contains(.queryDataWhenInMemory), found.bytes == nil {
            let actual = try found.entry.digest()
            if let known = digest, known != actual {
                disk.images.moveAside(found.entry)
                cache.memory?.remove(forKey: request.key)
                return nil
            }
            // Without a digest, the record only says that the bytes passed once.
            if digest == nil, try !isWhole(found, request) { return nil }
            digest = actual
        }
        guard let expected = request.expectedDigest else { return found }
        if digest == nil { digest = try found.entry.digest() }
        return digest == expected ? found : nil
    }

    @inline(never)
    private func isWhole(_ found: FoundImage, _ request: LoadRequest) throws(WebImageError) -> Bool {
        let bytes = try found.read()
        do throws(WebImageError) {
            _ = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                try verified(bytes, request)
            }
            return true
        } catch {
            if error.code == .localFault { throw error }
            // It was kept on purpose, and may be valid.
            guard error.code == .badImageData else { return false }
            disk.images.moveAside(found.entry)
            cache.memory?.remove(forKey: request.key)
            return false
        }
    }

    private func isFresh(_ known: HTTPValidators?, _ request: LoadRequest) -> Bool {
        guard request.options.contains(.honorCacheControl), let end = known?.freshUntil else { return false }
        return WallClock.seconds < end
    }

    /// Whether a verified image suffices: also one of a format that cannot be verified further, if such images are kept.
    private func isEnough(_ info: ImageInfo, _ request: LoadRequest) -> Bool {
        info.level >= request.level
            || request.unverifiable == .keep && !ImageCoder.canDecode(info.format) && info.level >= .header
    }

    @inline(never)
    private func hit(_ found: FoundImage, _ request: LoadRequest) throws(WebImageError) -> LoadResult {
        try request.judge(found.info, madeOf: found.entry.record?.original)
        let isInMemory = request.usesMemory && cache.memory?.contains(request.key) == true
        if !isInMemory, let removals = memoryRemovals(request), let memory = cache.memory,
            memory.accepts(cost: found.entry.size), let read = try cache.memoryImage(of: found)
        {
            memory.offer(read, forKey: request.key, removals: removals)
        }
        return LoadResult(
            LoadedImage(
                request, found.entry.path, found.info, found.entry.size, found.entry.record?.digest,
                cacheType: isInMemory ? .memory : .disk, outcome: .hit))
    }

    // MARK: Network

    /// Tries the URL, then its mirrors, until one has the image. If all fail, the error is that of the URL.
    /// * `present`: the cached image of the URL itself; it does not apply to mirrors.
    private nonisolated(nonsending) func fetchFromMirrors(
        _ key: CacheKey, _ request: LoadRequest, present: PresentImage? = nil
    ) async throws(WebImageError) -> LoadResult {
        var failure: WebImageError
        do throws(WebImageError) {
            return try await fetch(from: request.url, key, request, present: present)
        } catch {
            failure = error
        }
        for mirror in request.mirrors {
            guard ![.cancelled, .localFault, .imageRefused].contains(failure.code) else { throw failure }
            var other = request
            // Headers that may carry credentials are only for the URL's site.
            if !RequestURL.areOfOneSite(request.url, mirror) { other.headers.removeAll { !$0.isSafeAcrossSites } }
            other.isFromMirror = true
            do throws(WebImageError) {
                return try await fetch(from: mirror, key, other)
                    .fromMirror(mirror, attemptsBefore: failure.attempts)
            } catch {
                // Errors that end the whole load are thrown unchanged.
                if error.code == .cancelled || error.code == .localFault { throw error }
                failure.attempts += error.attempts
            }
        }
        throw failure
    }

    /// * `present`: the cached image, for a conditional request.
    private nonisolated(nonsending) func fetch(
        from url: String, _ key: CacheKey, _ request: LoadRequest,
        present: PresentImage? = nil
    ) async throws(WebImageError) -> LoadResult {
        var attempts = 0
        while true {
            var options: DownloadOptions = request.level == .none ? .uninspected : []
            if !disk.configuration.keepsHTTPValidators && !request.options.keepsValidators {
                options.insert(.bodyOnly)
            }
            if !request.options.isEmpty {
                options.formUnion(request.options.downloadOptions)
                if options.contains(.progressive) { options.remove(.uninspected) }
            }
            if decryptor != nil { options.insert(.uninspected) }
            var headers = request.headers
            if let present {
                headers += present.known.conditions
                options.insert(.conditional)
            }
            let loader = loader?.loader(of: url)
            let download: DownloadedImage
            if let loader {
                download = try await loader.download(url, request)
            } else {
                download = try await downloader.download(
                    url, options: options, headers: headers, attemptsUsed: attempts, cookies: request.cookies,
                    profile: request.profile, rules: request.rules, permit: request.permit, isChecked: true,
                    progress: request.progress)
            }
            defer { if loader == nil { downloader.didCheck(download) } }
            attempts = download.attempts
            if download.statusCode == 304, let present {
                if let image = try notModified(present.found, present.known, download, request) { return image }
                // It was removed meanwhile, so the whole image is needed.
                return try await fetch(from: url, key, request)
            }
            if let willStore = request.willStore { await willStore() }
            do throws(WebImageError) {
                return try await storeWithDecodeLock(try download.opened(by: decryptor, of: url), key, request)
            } catch {
                guard [.badImageData, .unsupportedFormat, .tooLarge, .imageRefused].contains(error.code) else {
                    throw error
                }
                var error = error
                error.attempts = attempts
                error.httpStatus = download.status
                if error.code == .imageRefused { error.savedBytes = 0 }
                guard error.isIncompleteImage && !download.lengthWasAnnounced else { throw error }
                // Only the end of the connection ended the body: it was truncated, and a retry may bring all of it.
                var most = request.profile?.configuration.maxAttempts
                if most == nil { most = await downloader.maxAttempts }
                guard attempts < most ?? 1 else {
                    error.code = .connectionLost
                    throw error
                }
            }
        }
    }

    /// The revalidated image; nil if it is no longer in the cache.
    @inline(never)
    private func notModified(
        _ found: FoundImage, _ known: HTTPValidators, _ download: DownloadedImage, _ request: LoadRequest
    ) throws(WebImageError) -> LoadResult? {
        // A 304 need not repeat unchanged fields (RFC 9110, section 15.4.5).
        var validators = request.validators(of: download)
        validators.etag = validators.etag ?? known.etag
        validators.lastModified = validators.lastModified ?? known.lastModified
        if validators.freshUntil == nil, let end = known.freshUntil {
            // The same lifetime as before, from now on: the file's date is that of the last validation.
            validators.freshUntil = WallClock.seconds + min(max(0, end - found.entry.modifiedAt), 10 * Freshness.year)
        }
        guard try disk.images.renew(found.entry, validators: validators) else { return nil }
        var loaded = try hit(found, request).image
        loaded.outcome = .notModified
        loaded.httpStatus = download.status
        loaded.attempts = download.attempts
        loaded.timing = download.timing
        return LoadResult(loaded)
    }

    // MARK: Storing

    @inline(never)
    private nonisolated(nonsending) func storeWithDecodeLock(
        _ download: DownloadedImage, _ key: CacheKey, _ request: LoadRequest
    ) async throws(WebImageError) -> LoadResult {
        try await turns.run(request) { () throws(WebImageError) in try store(download, key, request)
        }
    }

    @inline(never)
    private func store(
        _ download: DownloadedImage, _ key: CacheKey, _ request: LoadRequest
    ) throws(WebImageError) -> LoadResult {
        if request.storesSpecially { return try storeSpecially(download, key, request) }
        let (computesDigest, count) = (request.computesDigest, download.body.count)
        let removals = memoryRemovals(request)
        let goesToMemory = removals != nil && cache.memory?.accepts(cost: count) == true
        let (info, digest, copy) = try download.body.withUnsafeBytes { bytes throws(WebImageError) in
            let info = try verified(bytes, request)
            try request.judge(info)
            return (info, computesDigest ? SHA256.hash(bytes) : nil, goesToMemory ? Array(bytes) : nil)
        }
        let record = CacheRecord(info, length: count, digest: digest, storedAt: WallClock.seconds)
        try disk.images.store(
            download.body, for: key, record: record, validators: keptValidators(download, request),
            replacing: request.revalidatesHits, keepsValidators: request.options.keepsValidators)
        if request.isDurable { try disk.sync() }
        if let copy, let removals {
            // Only now: an image that could not be stored must be retried, not be a hit.
            keepInMemory(MemoryImage(bytes: copy, info: info, digest: digest), request, removals: removals)
        }
        var loaded = LoadedImage(
            request, request.needsPath ? disk.images.path(of: key) : nil, info, count, digest,
            cacheType: .none, outcome: .downloaded)
        loaded.httpStatus = download.status
        loaded.attempts = download.attempts
        loaded.timing = download.timing
        return LoadResult(loaded)
    }

    /// Stores an image with an expected digest or a transformation, or only in memory.
    @inline(never)
    private func storeSpecially(
        _ download: DownloadedImage, _ key: CacheKey, _ request: LoadRequest
    ) throws(WebImageError) -> LoadResult {
        var body = download.body
        let removals = memoryRemovals(request)
        // Making a variant decodes the image once more. Of a JPEG that finds what a check of its pixels would find; in other formats a check
        // looks at more, such as all frames.
        var isDecodedLater =
            request.variant?.keepsOriginal == false && request.transformation == nil && coder.coders == nil
        if isDecodedLater {
            isDecodedLater = try body.withUnsafeBytes { bytes throws(WebImageError) in
                ImageFormat(sniffing: bytes) == .jpeg
            }
        }
        var info = try verified(body, request, level: isDecodedLater ? min(request.level, .structure) : request.level)
        try request.judge(info)
        let original = request.variant.map { _ in OriginalImage(info) }
        if let expected = request.expectedDigest {
            let actual = try body.withUnsafeBytes { bytes throws(WebImageError) in SHA256.hash(bytes) }
            guard actual == expected else {
                throw WebImageError(
                    .digestMismatch, "its SHA-256 is \(actual.hex), and was to be \(expected.hex)",
                    httpStatus: download.statusCode)
            }
        }
        if let variant = request.variant {
            if variant.keepsOriginal {
                try publishOriginal(body, info, download, request)
                // One file cannot have two keys.
                body = ImageBody(try body.withUnsafeBytes { bytes throws(WebImageError) in Array(bytes) })
            }
            (body, info) = try made(variant, of: body, info, request)
        }
        if let transformed = try request.transformation?.transformed(body, info), transformed !== body {
            body = transformed
            info = try verified(body, request)
        }
        var (file, fileInfo) = (body, info)
        if let bytes = request.transformation?.serialize?(body, info) {
            file = ImageBody(bytes)
            fileInfo = try verified(file, request)
        }
        let computesDigest = request.computesDigest
        let digest = computesDigest ? try file.digest : nil
        let goesToDisk = !request.options.contains(.cacheMemoryOnly)
        if goesToDisk {
            let record = CacheRecord(
                fileInfo, original: original, length: file.count, digest: digest, storedAt: WallClock.seconds)
            try disk.images.store(
                file, for: key, record: record, validators: keptValidators(download, request),
                replacing: request.revalidatesHits, keepsValidators: request.options.keepsValidators)
            if request.isDurable { try disk.sync() }
        }
        var kept: [UInt8]?
        if !goesToDisk, request.usesMemory {
            kept = try file.withUnsafeBytes { bytes throws(WebImageError) in Array(bytes) }
        }
        if let removals, cache.memory?.accepts(cost: body.count) == true {
            let (bytes, own) = try body.withUnsafeBytes { bytes throws(WebImageError) in
                (Array(bytes), computesDigest ? SHA256.hash(bytes) : nil)
            }
            keepInMemory(MemoryImage(bytes: bytes, info: info, digest: own), request, removals: removals)
        }
        var loaded = LoadedImage(
            request, goesToDisk ? disk.images.path(of: key) : nil, fileInfo, file.count, digest,
            bytes: kept, cacheType: .none, outcome: .downloaded)
        loaded.httpStatus = download.status
        loaded.attempts = download.attempts
        loaded.timing = download.timing
        return LoadResult(loaded)
    }

    private func publishOriginal(
        _ body: ImageBody, _ info: ImageInfo, _ download: DownloadedImage, _ request: LoadRequest
    ) throws(WebImageError) {
        let record = CacheRecord(
            info, length: body.count, digest: request.computesDigest ? try body.digest : nil,
            storedAt: WallClock.seconds)
        try disk.images.store(
            body, for: CacheKey(request.originalKey), record: record, validators: keptValidators(download, request),
            replacing: request.revalidatesHits, keepsValidators: request.options.keepsValidators)
    }

    private func verified(_ bytes: UnsafeRawBufferPointer, _ request: LoadRequest) throws(WebImageError) -> ImageInfo {
        try coder.verify(bytes, level: request.level, unverifiable: request.unverifiable)
    }

    private func verified(
        _ body: ImageBody, _ request: LoadRequest, level: ValidationLevel? = nil
    ) throws(WebImageError) -> ImageInfo {
        var request = request
        request.level = level ?? request.level
        return try body.withUnsafeBytes { bytes throws(WebImageError) in try verified(bytes, request) }
    }

    private func keptValidators(_ download: DownloadedImage, _ request: LoadRequest) -> HTTPValidators? {
        let isKept = request.options.keepsValidators || disk.configuration.keepsHTTPValidators
        return isKept ? request.validators(of: download) : nil
    }

    /// The memory cache's removal count, needed for a later offer; nil if the request does not use memory.
    private func memoryRemovals(_ request: LoadRequest) -> Int? { request.usesMemory ? cache.memory?.removals : nil }

    /// Adds the download to memory; replaces the old image if its hit was to be revalidated.
    private func keepInMemory(_ image: MemoryImage, _ request: LoadRequest, removals: Int) {
        if request.revalidatesHits, cache.memory?.removals == removals {
            cache.memory?.insert(image, forKey: request.key)
        } else {
            cache.memory?.offer(image, forKey: request.key, removals: removals)
        }
    }
}

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
    private let turns: DecodeLock
    private let shared = SharedDownloads()
    private let failures = SharedFailures()

    init(
        cache: ImageCache, downloader: ImageDownloader, coder: ImageCoder,
        decryptor: (@Sendable (_ bytes: ImageBody, _ url: String) -> [UInt8]?)?, loader: (any ImageLoader)?
    ) {
        (self.cache, disk, self.downloader, self.loader) = (cache, cache.disk, downloader, loader)
        self.coder = coder
        turns = DecodeLock(endsCalls: coder.sandbox != nil)
        self.decryptor = decryptor
    }

    /// Loads one image with the settings of the request only.
    /// - Throws: as ``ImageManager/loadImage(with:options:)``.
    package nonisolated(nonsending) func load(_ request: LoadRequest) async throws(WebImageError) -> LoadResult {
        let key = CacheKey(request.key)
        if let image = inMemory(request) { return image }
        if request.isFromCacheOnly { return try await loadFromCache(key, request) }
        let began = ContinuousClock.now
        let (transfer, follower) = try await shared.transfer(of: key, request, cache.transfers)
        defer { transfer.release() }
        // After waiting, it is usually in the cache.
        if let image = inMemory(request) { return image.served(to: follower) }
        var present = try await turns.lookUp(request) { () throws(WebImageError) in try onDisk(key, request) }
        if let found = present, !request.options.refreshes || isFresh(found, request) {
            if let image = try hit(found, request) { return image.served(to: follower) }
            present = nil
        }
        if let image = try await fromOriginal(request) { return image }
        if let present {
            do throws(WebImageError) { try request.willUseNetwork?() } catch {
                guard let image = try hit(present, request) else { throw error }
                return image.kept(error)
            }
        }
        try await failures.take(key, request, transfer, since: began)
        if let present {
            if let willRefresh = request.willRefresh, let image = try hit(present, request) { willRefresh(image.image) }
        } else {
            try request.willUseNetwork?()
        }
        guard request.sharesDownload else { return try await download(key, request, present) }
        return try await shared.lead(key, request) { request async throws(WebImageError) in
            try await download(key, request, nil)
        }
    }

    private nonisolated(nonsending) func loadFromCache(
        _ key: CacheKey, _ request: LoadRequest
    ) async throws(WebImageError) -> LoadResult {
        let present = try await turns.lookUp(request) { () throws(WebImageError) in try onDisk(key, request) }
        if let present, let image = try hit(present, request) { return image }
        if let image = try await fromOriginal(request) { return image }
        try request.willUseNetwork?()
        if request.revalidatesHits, let expected = request.expectedDigest,
            let actual = try disk.find(forKey: request.key, named: key, atLeast: .none)?.knownDigest(),
            actual != expected
        {
            throw WebImageError(
                .digestMismatch, "the SHA-256 in the cache is \(actual.hex), and was to be \(expected.hex)")
        }
        throw WebImageError(.notCached, "not in the cache, and the network was not to be asked")
    }

    /// * `present`: the cached image, for a conditional request.
    private nonisolated(nonsending) func download(
        _ key: CacheKey, _ request: LoadRequest, _ present: PresentImage?
    ) async throws(WebImageError) -> LoadResult {
        do throws(WebImageError) {
            return request.mirrors.isEmpty
                ? try await fetch(from: request.url, key, request, present)
                : try await fetchFromMirrors(key, request, present)
        } catch {
            // A rule of ours or of its site is no failure of the image that is there.
            if error.code == .refused, let present, let image = try hit(present, request) { return image.kept(error) }
            await failures.tell(error, key, request, cache.transfers)
            throw error
        }
    }

    // MARK: Lookup

    /// The image in memory if its level suffices. Its path is that of its file, if it still exists.
    @inline(never)
    private func inMemory(_ request: LoadRequest) -> LoadResult? {
        guard request.usesMemory, !request.revalidatesHits,
            let found = cache.memory?.image(forKey: request.key), isEnough(found.info, request)
        else { return nil }
        let digest = found.digest ?? SHA256.hash(found.bytes)
        return LoadResult(
            LoadedImage(
                request, disk.existingPath(forKey: request.key), found.info, found.bytes.count, digest,
                bytes: found.bytes, cacheType: .memory, outcome: .hit))
    }

    /// The image on disk if its level suffices; a lower one is verified now, and raised or moved aside. If its hit is to be revalidated, its
    /// bytes have to be the expected ones.
    @inline(never)
    private func onDisk(_ key: CacheKey, _ request: LoadRequest) throws(WebImageError) -> PresentImage? {
        let found = try cache.find(
            request.key, named: key, atLeast: request.level, unverifiable: request.unverifiable, coder: coder)
        guard let found else { return nil }
        if request.revalidatesHits, try !isExpected(found, request) { return nil }
        return PresentImage(found, request.options.refreshes ? disk.images.validators(of: found.entry) : nil)
    }

    /// The variant, made of the original on disk, and stored. An original that is damaged, or not the expected one, is fetched again.
    private nonisolated(nonsending) func fromOriginal(
        _ request: LoadRequest
    ) async throws(WebImageError) -> LoadResult? {
        guard let variant = request.variant, !request.revalidatesHits else { return nil }
        return try await turns.run(request) { () throws(WebImageError) in try storeFromOriginal(variant, request) }
    }

    @inline(never)
    private func storeFromOriginal(
        _ variant: VariantRecipe, _ request: LoadRequest
    ) throws(WebImageError) -> LoadResult? {
        guard
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
        let digest = try body.digest
        if !request.options.contains(.cacheMemoryOnly) {
            let record = CacheRecord(
                info, original: OriginalImage(found.info), length: body.count, digest: digest,
                storedAt: WallClock.seconds)
            var validators = HTTPValidators()
            validators.contentDigest = try original.digest
            try disk.images.store(body, for: CacheKey(request.key), record: record, validators: validators)
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
            try variant.bytes(of: bytes, known, key: request.originalKey, coder: coder.reading(body))
        }
        guard let bytes else { return (body, info.level < request.level ? try verified(body, request) : info) }
        let made = ImageBody(bytes)
        return (made, try verified(made, request))
    }

    /// Whether the bytes of an image are the expected ones; a corrupted file is moved aside.
    private func isExpected(_ found: FoundImage, _ request: LoadRequest) throws(WebImageError) -> Bool {
        var digest = found.entry.record?.digest
        if request.options.contains(.queryDataWhenInMemory), found.bytes == nil {
            let actual = try found.entry.digest()
            if let known = digest, known != actual {
                disk.images.moveAside(found.entry)
                cache.memory?.remove(forKey: request.key)
                return false
            }
            // Without a digest, the record only says that the bytes passed once.
            if digest == nil, try !isWhole(found, request) { return false }
            digest = actual
        }
        guard let expected = request.expectedDigest else { return true }
        if digest == nil { digest = try found.entry.digest() }
        return digest == expected
    }

    @inline(never)
    private func isWhole(_ found: FoundImage, _ request: LoadRequest) throws(WebImageError) -> Bool {
        let body = ImageBody(try found.read())
        do throws(WebImageError) {
            _ = try verified(body, request)
            return true
        } catch {
            if error.code == .localFault || error.code == .cancelled { throw error }
            // It was kept on purpose, and may be valid.
            guard error.code == .badImageData else { return false }
            disk.images.moveAside(found.entry)
            cache.memory?.remove(forKey: request.key)
            return false
        }
    }

    private func isFresh(_ present: PresentImage, _ request: LoadRequest) -> Bool {
        guard request.options.contains(.honorCacheControl), let end = present.known?.freshUntil else { return false }
        return WallClock.seconds < end
    }

    /// Whether a verified image suffices: also one of a format that cannot be verified further, if such images are kept.
    private func isEnough(_ info: ImageInfo, _ request: LoadRequest) -> Bool {
        info.level >= request.level
            || request.unverifiable == .keep && !ImageCoder.canDecode(info.format) && info.level >= .header
    }

    /// Nil if its file was truncated just now.
    @inline(never)
    private func hit(_ present: PresentImage, _ request: LoadRequest) throws(WebImageError) -> LoadResult? {
        let found = present.found
        try request.judge(found.info, madeOf: found.entry.record?.original)
        var digest = found.entry.record?.digest
        if let bytes = found.bytes { digest = SHA256.hash(bytes) }
        var isInMemory = false
        if request.usesMemory, let memory = cache.memory {
            // Other loads have looked there.
            isInMemory = request.revalidatesHits && memory.contains(request.key)
            if !isInMemory, memory.accepts(cost: found.entry.size),
                try cache.memoryImage(of: found, forKey: request.key) == nil
            {
                return nil
            }
        }
        return LoadResult(
            LoadedImage(
                request, found.entry.path, found.info, found.entry.size, digest,
                cacheType: isInMemory ? .memory : .disk, outcome: .hit))
    }

    // MARK: Network

    /// Tries the URL, then its mirrors, until one has the image. If all fail, the error is that of the URL.
    /// * `present`: the cached image of the URL itself; it does not apply to mirrors.
    private nonisolated(nonsending) func fetchFromMirrors(
        _ key: CacheKey, _ request: LoadRequest, _ present: PresentImage?
    ) async throws(WebImageError) -> LoadResult {
        var failure: WebImageError
        do throws(WebImageError) {
            return try await fetch(from: request.url, key, request, present)
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
                return try await fetch(from: mirror, key, other, nil)
                    .fromMirror(mirror, triesBefore: failure.tries)
            } catch {
                // Errors that end the whole load are thrown unchanged.
                if error.code == .cancelled || error.code == .localFault { throw error }
                failure.tries += error.tries
            }
        }
        throw failure
    }

    /// * `present`: the cached image, for a conditional request.
    private nonisolated(nonsending) func fetch(
        from url: String, _ key: CacheKey, _ request: LoadRequest, _ present: PresentImage?
    ) async throws(WebImageError) -> LoadResult {
        var tries = 0
        while true {
            var options: DownloadOptions = request.level == .none ? .uninspected : []
            if !request.options.isEmpty {
                options.formUnion(request.options.downloadOptions)
                if options.contains(.progressive) { options.remove(.uninspected) }
            }
            if decryptor != nil { options.insert(.uninspected) }
            var headers = request.headers
            if let known = present?.known, !known.conditions.isEmpty {
                headers += known.conditions
                options.insert(.conditional)
            }
            let loader = loader?.loader(of: url)
            let download: DownloadedImage
            if let loader {
                download = try await loader.download(url, request)
            } else {
                download = try await downloader.download(
                    url, options: options, headers: headers, triesUsed: tries, cookies: request.cookies,
                    profile: request.profile, rules: request.rules, permit: request.permit, isChecked: true,
                    progress: request.progress)
            }
            defer { if loader == nil { downloader.didCheck(download) } }
            tries = download.tries
            if download.statusCode == 304, let present, let known = present.known {
                if let image = try notModified(present, known, download, request) { return image }
                // It was removed meanwhile, so the whole image is needed.
                return try await fetch(from: url, key, request, nil)
            }
            if let willStore = request.willStore { await willStore() }
            do throws(WebImageError) {
                let opened = try download.opened(by: decryptor, of: url)
                return try await turns.run(request) { () throws(WebImageError) in try store(opened, key, request) }
            } catch {
                guard
                    [.badImageData, .unsupportedFormat, .tooLarge, .imageRefused, .decoderCrashed].contains(error.code)
                else {
                    throw error
                }
                var error = error
                error.tries = tries
                error.httpStatus = download.status
                if error.code == .imageRefused { error.savedBytes = 0 }
                guard error.isIncompleteImage && !download.lengthWasAnnounced else { throw error }
                // Only the end of the connection ended the body: it was truncated, and a retry may bring all of it.
                var most = request.profile?.configuration.maxTries
                if most == nil { most = await downloader.maxTries }
                guard tries < most ?? 1 else {
                    error.code = .connectionLost
                    throw error
                }
            }
        }
    }

    /// The revalidated image; nil if it is no longer in the cache.
    @inline(never)
    private func notModified(
        _ present: PresentImage, _ known: HTTPValidators, _ download: DownloadedImage, _ request: LoadRequest
    ) throws(WebImageError) -> LoadResult? {
        // A 304 need not repeat unchanged fields (RFC 9110, section 15.4.5).
        var validators = request.validators(of: download) ?? HTTPValidators()
        validators.etag = validators.etag ?? known.etag
        validators.lastModified = validators.lastModified ?? known.lastModified
        validators.contentDigest = known.contentDigest
        if validators.freshUntil == nil, let end = known.freshUntil {
            // The same lifetime as before, from now on: the file's date is that of the last validation.
            validators.freshUntil =
                WallClock.seconds + min(max(0, end - present.found.entry.modifiedAt), 10 * Freshness.year)
        }
        guard try disk.images.renew(present.found.entry, validators: validators),
            let image = try hit(present, request)
        else { return nil }
        var loaded = image.image.requested(by: download)
        loaded.outcome = .notModified
        return LoadResult(loaded)
    }

    // MARK: Storing

    /// Verifies an image, makes what is to be stored of it, and stores that on disk and in memory.
    @inline(never)
    private func store(
        _ download: DownloadedImage, _ key: CacheKey, _ request: LoadRequest
    ) throws(WebImageError) -> LoadResult {
        var body = download.body
        let removals = request.usesMemory ? cache.memory?.removals : nil
        var info = try verified(body, request, level: try levelAtFirst(body, request))
        try request.judge(info)
        let original = request.variant.map { _ in OriginalImage(info) }
        if let expected = request.expectedDigest {
            let actual = try body.digest
            guard actual == expected else {
                throw WebImageError(
                    .digestMismatch, "its SHA-256 is \(actual.hex), and was to be \(expected.hex)",
                    httpStatus: download.statusCode)
            }
        }
        var contentDigest: Digest?
        if let variant = request.variant {
            contentDigest = try body.digest
            if variant.keepsOriginal {
                try publish(body, info, contentDigest, as: CacheKey(request.originalKey), download, request)
                // One file cannot have two keys.
                body = ImageBody(try body.bytes)
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
        let digest = try file.digest
        let goesToDisk = !request.options.contains(.cacheMemoryOnly)
        var kept: MemoryImage?
        if removals != nil, cache.memory?.accepts(cost: body.count) == true {
            let own = file === body ? digest : try body.digest
            kept = MemoryImage(bytes: try body.bytes, info: info, digest: own)
        }
        if goesToDisk {
            try publish(file, fileInfo, digest, of: original, contentDigest, as: key, download, request)
            if request.isDurable { try disk.sync() }
        }
        // Only now: an image that could not be stored must be retried, not be a hit.
        if let kept, let removals { keepInMemory(kept, request, removals: removals) }
        let loaded = LoadedImage(
            request, goesToDisk && request.needsPath ? disk.images.path(of: key) : nil, fileInfo, file.count, digest,
            bytes: goesToDisk || !request.usesMemory ? nil : try file.bytes, cacheType: .none, outcome: .downloaded)
        return LoadResult(loaded.requested(by: download))
    }

    /// Making a variant decodes the image once more. Of a JPEG that finds what a check of its pixels would find; in other formats a check looks
    /// at more, such as all frames.
    private func levelAtFirst(_ body: ImageBody, _ request: LoadRequest) throws(WebImageError) -> ValidationLevel {
        guard request.variant?.keepsOriginal == false, request.transformation == nil, coder.coders == nil else {
            return request.level
        }
        let format = try body.withUnsafeBytes { bytes throws(WebImageError) in ImageFormat(sniffing: bytes) }
        return format == .jpeg ? min(request.level, .structure) : request.level
    }

    /// * `original`, `contentDigest`: what it was made of.
    private func publish(
        _ body: ImageBody, _ info: ImageInfo, _ digest: Digest?, of original: OriginalImage? = nil,
        _ contentDigest: Digest? = nil, as key: CacheKey, _ download: DownloadedImage, _ request: LoadRequest
    ) throws(WebImageError) {
        let record = CacheRecord(
            info, original: original, length: body.count, digest: digest, storedAt: WallClock.seconds)
        var validators = request.validators(of: download)
        if let contentDigest {
            validators = validators ?? HTTPValidators()
            validators?.contentDigest = contentDigest
        }
        try disk.images.store(
            body, for: key, record: record, validators: validators, replacing: request.revalidatesHits)
    }

    private func verified(
        _ body: ImageBody, _ request: LoadRequest, level: ValidationLevel? = nil
    ) throws(WebImageError) -> ImageInfo {
        try body.withUnsafeBytes { bytes throws(WebImageError) in
            try coder.reading(body).verify(
                bytes, level: level ?? request.level, unverifiable: request.unverifiable)
        }
    }

    /// Adds the download to memory; replaces the old image if its hit was to be revalidated.
    private func keepInMemory(_ image: MemoryImage, _ request: LoadRequest, removals: Int) {
        if request.revalidatesHits, cache.memory?.removals == removals {
            cache.memory?.insert(image, forKey: request.key)
        } else {
            cache.memory?.offer(image, forKey: request.key, removals: removals)
        }
    }
}

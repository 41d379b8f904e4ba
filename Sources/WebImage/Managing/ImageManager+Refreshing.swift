internal import Threading

// Loads for which it is not enough that the cache has an image: it may have changed at its server, or its bytes are to be looked at.
extension ImageManager {
    func loadQuestioningHits(
        _ key: CacheKey, _ request: LoadRequest
    ) async throws(WebImageError) -> LoadedImage {
        if request.isFromCacheOnly {
            if let found = try questioned(request) { return try hit(found, request) }
            try request.willLeaveCache?()
            if let expected = request.expectedDigest,
                let actual = try cache.digest(forKey: request.key), actual != expected
            {
                throw WebImageError(
                    .digestMismatch, "the SHA-256 in the cache is \(actual.hex), and was to be \(expected.hex)")
            }
            throw WebImageError(.notCached, "not in the cache, and the network was not to be asked")
        }
        let transfer = try await transfer(of: key)
        defer { transfer.release() }
        let found = try questioned(request)
        let known = found.flatMap { cache.validators(of: $0) }
        if let found, !request.options.refreshes || isFresh(known, request) { return try hit(found, request) }
        try request.willLeaveCache?()
        do throws(WebImageError) {
            guard request.mirrors.isEmpty else { return try await fetchFromMirrors(key, request, found, known) }
            let present = found.flatMap { found in known.map { (found, $0) } }
            return try await fetch(from: request.url, key, request, present: present)
        } catch {
            request.didFail?(error)
            throw error
        }
    }

    private func isFresh(_ known: HTTPValidators?, _ request: LoadRequest) -> Bool {
        guard request.options.contains(.honorCacheControl), let end = known?.freshUntil else { return false }
        return WallClock.seconds < end
    }

    /// What the disk has, where its bytes are what is wanted; a file whose bytes are not what was stored is moved aside.
    private func questioned(_ request: LoadRequest) throws(WebImageError) -> FoundImage? {
        guard let found = try find(request) else { return nil }
        var digest = found.record?.digest
        if request.options.contains(.queryDataWhenInMemory), found.bytes == nil {
            let actual = try found.digest()
            if let known = digest, known != actual {
                try cache.discard(found, request.key)
                cache.memory?.remove(forKey: request.key)
                return nil
            }
            // A file without a digest: its record says no more than that the bytes once passed.
            if digest == nil, try !isWhole(found, request) { return nil }
            digest = actual
        }
        guard let expected = request.expectedDigest else { return found }
        if digest == nil { digest = try found.digest() }
        return digest == expected ? found : nil
    }

    private func isWhole(_ found: FoundImage, _ request: LoadRequest) throws(WebImageError) -> Bool {
        let bytes = try found.read()
        do throws(WebImageError) {
            _ = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                try verified(bytes, request)
            }
            return true
        } catch {
            if error.code == .localFault { throw error }
            // Somebody kept it, and it may be whole.
            guard error.code == .badImageData else { return false }
            try cache.discard(found, request.key)
            cache.memory?.remove(forKey: request.key)
            return false
        }
    }

    private func hit(_ found: FoundImage, _ request: LoadRequest) throws(WebImageError) -> LoadedImage {
        let isInMemory = request.usesMemory && cache.memory?.contains(request.key) == true
        if !isInMemory, let removals = memoryRemovals(request), let memory = cache.memory,
            memory.accepts(cost: found.size), let read = try cache.memoryImage(of: found, request.key)
        {
            memory.offer(read, forKey: request.key, removals: removals)
        }
        return image(
            request, found.path, found.info, found.size, found.record?.digest,
            cacheType: isInMemory ? .memory : .disk, outcome: .hit)
    }

    /// The image that the server says has not changed; nil where it is not in the cache any more.
    func notModified(
        _ found: FoundImage, _ known: HTTPValidators, _ download: DownloadedImage, _ key: CacheKey,
        _ request: LoadRequest
    ) throws(WebImageError) -> LoadedImage? {
        // A 304 need not repeat what it does not change (RFC 9110, section 15.4.5).
        var validators = validators(download, request)
        validators.etag = validators.etag ?? known.etag
        validators.lastModified = validators.lastModified ?? known.lastModified
        if validators.freshUntil == nil, let end = known.freshUntil {
            // As long as before, from now on: the file's date is that of the last time.
            validators.freshUntil = WallClock.seconds + min(max(0, end - found.renewedAt), 10 * Freshness.year)
        }
        guard try cache.renew(found, validators, forKey: request.key) else { return nil }
        var loaded = try hit(found, request)
        loaded.outcome = .notModified
        loaded.httpStatus = download.statusCode
        loaded.attempts = download.attempts
        loaded.timing = download.timing
        return loaded
    }

    /// What is kept beside an image's bytes; nil where nothing is.
    func keptValidators(_ download: DownloadedImage, _ request: LoadRequest) -> HTTPValidators? {
        let isKept = request.options.keepsValidators || cache.disk.configuration.keepsHTTPValidators
        return isKept ? validators(download, request) : nil
    }

    /// What is kept of a response for the next time.
    func validators(_ download: DownloadedImage, _ request: LoadRequest) -> HTTPValidators {
        if request.isFromMirror { return HTTPValidators(key: request.key) }
        return HTTPValidators(
            etag: download.eTag, lastModified: download.lastModified, key: request.key,
            freshUntil: download.freshFor.map { WallClock.seconds + $0 })
    }

    /// Puts what was downloaded into memory: in place of what is there, where that was asked for anew.
    func keepInMemory(_ image: MemoryImage, _ request: LoadRequest, removals: Int) {
        if request.questionsHits, cache.memory?.removals == removals {
            cache.memory?.insert(image, forKey: request.key)
        } else {
            cache.memory?.offer(image, forKey: request.key, removals: removals)
        }
    }
}

extension HTTPValidators {
    /// The headers that ask for the bytes only if they have changed.
    var conditions: [HTTPHeader] {
        [etag.map { HTTPHeader("If-None-Match", $0) }, lastModified.map { HTTPHeader("If-Modified-Since", $0) }]
            .compactMap { $0 }.filter(\.isValid)
    }
}

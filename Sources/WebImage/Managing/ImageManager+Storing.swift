internal import Threading

// What is not simply stored as it came, and where it may come from.
extension ImageManager {
    /// Tries the URL, then its mirrors, until one has the image. Where none has, the failure is that of the URL.
    ///
    /// * `found`, `known`: what the cache has of the URL itself; of a mirror's bytes nothing is known.
    nonisolated(nonsending) func fetchFromMirrors(
        _ key: CacheKey, _ request: LoadRequest, _ found: FoundImage? = nil, _ known: HTTPValidators? = nil
    ) async throws(WebImageError) -> LoadedImage {
        var failure: WebImageError
        do throws(WebImageError) {
            let present = found.flatMap { found in known.map { (found, $0) } }
            return try await fetch(from: request.url, key, request, present: present)
        } catch {
            failure = error
        }
        for mirror in request.mirrors {
            guard failure.code != .cancelled, failure.code != .localFault else { throw failure }
            var other = request
            // What speaks for the user is for the site of the URL.
            if !Self.areOfOneSite(request.url, mirror) { other.headers.removeAll { !$0.isHarmless } }
            other.isFromMirror = true
            do throws(WebImageError) {
                var image = try await fetch(from: mirror, key, other)
                image.attempts += failure.attempts
                image.details.append("from the mirror \(mirror)")
                return image
            } catch {
                // What ends the whole load is told as it is.
                if error.code == .cancelled || error.code == .localFault { throw error }
                failure.attempts += error.attempts
            }
        }
        throw failure
    }

    private static func areOfOneSite(_ url: String, _ mirror: String) -> Bool {
        guard let one = try? RequestURL(url), let other = try? RequestURL(mirror) else { return false }
        return one.origin == other.origin
    }

    /// Stores what has to have a digest, is made into something else first, or is kept in memory alone.
    func storeSpecially(
        _ download: DownloadedImage, _ key: CacheKey, _ request: LoadRequest
    ) throws(WebImageError) -> LoadedImage {
        var body = download.body
        let removals = memoryRemovals(request)
        var info = try verified(body, request)
        if let expected = request.expectedDigest {
            let actual = try body.withUnsafeBytes { bytes throws(WebImageError) in SHA256.hash(bytes) }
            guard actual == expected else {
                throw WebImageError(
                    .digestMismatch, "its SHA-256 is \(actual.hex), and was to be \(expected.hex)",
                    httpStatus: download.statusCode)
            }
        }
        if let bytes = request.rework?.transform?(body, info) {
            body = ImageBody(bytes)
            info = try verified(body, request)
        }
        var (file, fileInfo) = (body, info)
        if let bytes = request.rework?.serialize?(body, info) {
            file = ImageBody(bytes)
            fileInfo = try verified(file, request)
        }
        let computesDigest = request.computesDigest
        let digest = try file.withUnsafeBytes { bytes throws(WebImageError) in
            computesDigest ? SHA256.hash(bytes) : nil
        }
        let goesToDisk = !request.options.contains(.cacheMemoryOnly)
        if goesToDisk {
            let record = CacheRecord(fileInfo, length: file.count, digest: digest, storedAt: WallClock.seconds)
            try cache.publish(
                file, record, keptValidators(download, request), for: key, forKey: request.key,
                replacing: request.questionsHits, keepsValidators: request.options.keepsValidators)
            if request.isDurable { try cache.sync() }
        }
        if let removals, cache.memory?.accepts(cost: body.count) == true {
            let (bytes, own) = try body.withUnsafeBytes { bytes throws(WebImageError) in
                (Array(bytes), computesDigest ? SHA256.hash(bytes) : nil)
            }
            keepInMemory(MemoryImage(bytes: bytes, info: info, digest: own), request, removals: removals)
        }
        var loaded = image(
            request, goesToDisk ? cache.publishedPath(key, forKey: request.key) : nil, fileInfo, file.count, digest,
            cacheType: .none,
            outcome: .downloaded)
        loaded.httpStatus = download.statusCode
        loaded.attempts = download.attempts
        loaded.timing = download.timing
        return loaded
    }

    private func verified(_ body: ImageBody, _ request: LoadRequest) throws(WebImageError) -> ImageInfo {
        try body.withUnsafeBytes { bytes throws(WebImageError) in try verified(bytes, request) }
    }
}

internal import Threading

extension ImageCache {
    /// Finds an image in memory or on disk (`queryCacheOperationForKey:done:`). What is found on disk is in memory afterwards.
    /// - Returns: the image and where it was; nil where there is none.
    /// - Throws: `localFault` where the disk cannot be read; `cancelled` where the task was before that, nothing is read then.
    public func queryImage(
        forKey key: String
    ) async throws(WebImageError) -> (image: MemoryImage, cacheType: ImageCacheType)? {
        if let image = imageFromMemoryCache(forKey: key) { return (image, .memory) }
        if Task.isCancelled { throw WebImageError(.cancelled, "the query was cancelled") }
        guard let image = try await imageFromDiskCache(forKey: key) else { return nil }
        return (image, .disk)
    }

    /// The image in memory; nil where there is none.
    public func imageFromMemoryCache(forKey key: String) -> MemoryImage? { memory?.image(forKey: key) }

    /// The image on disk, which is in memory afterwards; nil where there is none. A file that is damaged is moved aside; one that passed less
    /// than the configuration asks for is verified now.
    /// - Throws: `localFault` where the disk cannot be read.
    public func imageFromDiskCache(forKey key: String) async throws(WebImageError) -> MemoryImage? {
        try await pool.run { [self] () throws(WebImageError) -> MemoryImage? in
            let removals = memory?.removals
            let found = try find(key, atLeast: configuration.validation, coder: configuration.coder)
            guard let found, let image = try memoryImage(of: found, key) else { return nil }
            if let removals { memory?.offer(image, forKey: key, removals: removals) }
            return image
        }
    }

    /// Where an image is (`containsImageForKey:cacheType:completion:`): in memory, on disk, or `none`.
    public func containsImage(forKey key: String) async -> ImageCacheType {
        if memory?.contains(key) == true { return .memory }
        return await diskImageExists(forKey: key) ? .disk : .none
    }

    /// Whether the disk has an image, whole by its record or without one (`diskImageExistsWithKey:completion:`).
    public func diskImageExists(forKey key: String) async -> Bool {
        await pool.run { [self] in store.contains(key) }
    }

    /// Where the file of a key is, or would be; nil without a key, and where the store has no files.
    public func cachePath(forKey key: String?) -> String? { key.flatMap { store.path(forKey: $0) } }

    /// Bytes that all images take of the disk, in blocks of 4 KiB; all processes on the cache keep it together, so nothing is read.
    /// See ``DiskCache/diskUsage()``.
    /// - Throws: `localFault`.
    public func totalDiskSize() async throws(WebImageError) -> Int {
        try await pool.run { [self] () throws(WebImageError) in try store.diskUsage().size }
    }

    /// How many images are on disk; known as ``totalDiskSize()`` is.
    /// - Throws: `localFault`.
    public func totalDiskCount() async throws(WebImageError) -> Int {
        try await pool.run { [self] () throws(WebImageError) in try store.diskUsage().count }
    }
}

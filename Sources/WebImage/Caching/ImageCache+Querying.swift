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
            guard let found, let image = try memoryImage(of: found) else { return nil }
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
        await pool.run { [self] in disk.containsData(forKey: key) }
    }

    /// Where the file of a key is, or would be; nil without a key.
    public func cachePath(forKey key: String?) -> String? { key.map { disk.cachePath(forKey: $0) } }

    /// Bytes that all images take of the disk, in blocks of 4 KiB; all processes on the cache keep it together, so nothing is read.
    /// See ``DiskCache/diskUsage()``.
    /// - Throws: `localFault`.
    public func totalDiskSize() async throws(WebImageError) -> Int {
        try await pool.run { [self] () throws(WebImageError) in try disk.diskUsage().size }
    }

    /// How many images are on disk; known as ``totalDiskSize()`` is.
    /// - Throws: `localFault`.
    public func totalDiskCount() async throws(WebImageError) -> Int {
        try await pool.run { [self] () throws(WebImageError) in try disk.diskUsage().count }
    }

    /// What the disk has under a key, verified. A file that passed less than `level` is verified now, and raised or moved aside. Blocks.
    func find(
        _ key: String, atLeast level: ValidationLevel, coder: ImageCoder
    ) throws(WebImageError) -> FoundImage? {
        guard let entry = try disk.lookup(forKey: key, atLeast: level) else { return nil }
        if !entry.needsVerification, let record = entry.record {
            let info = ImageInfo(
                format: record.format, width: record.width, height: record.height, level: record.level)
            return FoundImage(entry: entry, info: info, bytes: nil)
        }
        let bytes = try entry.bytes()
        let info: ImageInfo
        do throws(WebImageError) {
            info = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                try coder.verify(bytes, level: level)
            }
        } catch {
            if error.code == .localFault { throw error }
            disk.moveAside(entry)
            return nil
        }
        _ = try disk.raise(entry, to: info)
        return FoundImage(entry: entry, info: info, bytes: bytes)
    }

    /// Reads what was found; nil where somebody has cut the file short, which is moved aside. Blocks.
    func memoryImage(of found: FoundImage) throws(WebImageError) -> MemoryImage? {
        let bytes: [UInt8]
        if let read = found.bytes { bytes = read } else { bytes = try found.entry.bytes() }
        guard bytes.count == found.entry.size else {
            disk.moveAside(found.entry)
            return nil
        }
        return MemoryImage(bytes: bytes, info: found.info, digest: found.entry.record?.digest)
    }
}

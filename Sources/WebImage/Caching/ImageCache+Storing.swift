internal import Threading

extension ImageCache {
    /// Verifies an image and stores it, in place of the one under its key (`storeImage:imageData:forKey:toDisk:completion:`).
    ///
    /// It is in memory before it is written to the disk, and on disk when this returns.
    /// - Parameters:
    ///   - data: the encoded bytes.
    ///   - key: what ``key(for:)`` makes of a URL, or any other text.
    ///   - toDisk: false keeps it in memory alone; then nothing is kept where the cache has no memory.
    /// - Throws: `badImageData` where it is no whole image, nothing is stored then; `localFault` where it cannot be written, it is in memory
    ///   even so.
    public func store(_ data: [UInt8], forKey key: String, toDisk: Bool = true) async throws(WebImageError) {
        try await pool.run { [self] () throws(WebImageError) in
            let image = try verified(data)
            memory?.insert(image, forKey: key)
            if toDisk { try write(image, forKey: key) }
        }
    }

    /// Verifies an image and stores it on disk alone, in place of the one under its key (`storeImageDataToDisk:forKey:`).
    /// - Throws: `badImageData`, `localFault`.
    public func storeImageDataToDisk(_ data: [UInt8], forKey key: String) async throws(WebImageError) {
        try await pool.run { [self] () throws(WebImageError) in
            try write(try verified(data), forKey: key)
            // Memory is asked first, and must not answer with what was there before.
            memory?.remove(forKey: key)
        }
    }

    /// Stores a decoded image, for which there are no encoded bytes (`storeImage:forKey:toDisk:completion:`).
    /// - Parameters:
    ///   - bitmap: the image.
    ///   - format: what it becomes, JPEG or PNG; nil (default): PNG where it has alpha, otherwise JPEG.
    ///   - key: as for ``store(_:forKey:toDisk:)``.
    ///   - toDisk: likewise.
    /// - Throws: as ``ImageCoder/encode(_:as:quality:)`` and ``store(_:forKey:toDisk:)``; `invalidConfiguration` for GIF, which nothing here
    ///   writes.
    public func store(
        _ bitmap: Bitmap, format: ImageFormat? = nil, forKey key: String, toDisk: Bool = true
    ) async throws(WebImageError) {
        let coder = configuration.coder
        let data = try await pool.run { () throws(WebImageError) in try coder.encode(bitmap, as: format) }
        try await store(data, forKey: key, toDisk: toDisk)
    }

    private func verified(_ data: [UInt8]) throws(WebImageError) -> MemoryImage {
        try MemoryImage(verifying: data, level: configuration.validation, coder: configuration.coder)
    }

    private func write(_ image: MemoryImage, forKey key: String) throws(WebImageError) {
        let body = ImageBody(image.bytes)
        let record = CacheRecord(image.info, length: body.count, digest: image.digest, storedAt: WallClock.seconds)
        try publish(body, record, HTTPValidators(key: key), for: CacheKey(key), forKey: key, replacing: true)
    }
}

extension MemoryImage {
    /// Verifies bytes.
    /// - Throws: `badImageData` where they are no whole image.
    init(verifying bytes: [UInt8], level: ValidationLevel, coder: ImageCoder) throws(WebImageError) {
        let info = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
            try coder.verify(bytes, level: level)
        }
        self.init(bytes: bytes, info: info, digest: SHA256.hash(bytes))
    }
}

extension DiskCache {
    /// Verifies an image and stores it, in place of the one under its key. Blocks.
    /// - Returns: what the check found out.
    /// - Throws: `badImageData` where it is no whole image, nothing is stored then; `localFault`.
    @discardableResult
    package func storeVerified(
        _ data: [UInt8], forKey key: String, level: ValidationLevel, coder: ImageCoder = ImageCoder(),
        replacing: Bool = true
    ) throws(WebImageError) -> ImageInfo {
        let image = try MemoryImage(verifying: data, level: level, coder: coder)
        try store(image, forKey: key, replacing: replacing)
        return image.info
    }

    func store(_ image: MemoryImage, forKey key: String, replacing: Bool = true) throws(WebImageError) {
        let record = CacheRecord(
            image.info, length: image.bytes.count, digest: image.digest, storedAt: WallClock.seconds)
        try storeBesideClearing(
            ImageBody(image.bytes), for: CacheKey(key), record: record, validators: HTTPValidators(key: key),
            replacing: replacing)
    }
}

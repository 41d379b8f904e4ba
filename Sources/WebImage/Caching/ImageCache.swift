internal import Glibc
internal import Threading

/// The cache of an image manager (SDImageCache): memory before disk, keys, and the rule that an image is transferred once.
///
/// Disk access is asynchronous and runs on the cache's own threads, which start with the first such call.
public final class ImageCache: Sendable {
    /// Maps an absolute URL to a key; nil keeps the URL.
    public typealias KeyFilter = @Sendable (_ url: String) -> String?

    /// The directory: the images on disk, and the locks between processes.
    public let disk: DiskCache
    /// The images in memory; nil if `shouldCacheImagesInMemory` is false.
    public let memory: MemoryCache?
    /// Its settings.
    public let configuration: Configuration
    /// Maps URLs to keys (SDWebImageManager's `cacheKeyFilter`); nil (default): the URL is the key, byte for byte.
    public let cacheKeyFilter: KeyFilter?
    package let transfers: TransferLock
    private let threads = Locked<ThreadPool?>(nil)

    /// Opens a cache in its own directory.
    /// - Throws: `localFault` with a sentence that names the directory.
    public convenience init(
        directory: String, configuration: Configuration = Configuration(), cacheKeyFilter: KeyFilter? = nil
    ) throws(WebImageError) {
        try self.init(
            DiskCache(directory: directory, configuration: configuration.disk), configuration: configuration,
            cacheKeyFilter: cacheKeyFilter)
    }

    /// A cache in a directory that is open.
    package init(
        _ disk: DiskCache, configuration: Configuration = Configuration(), cacheKeyFilter: KeyFilter? = nil
    ) throws(WebImageError) {
        self.disk = disk
        transfers = try TransferLock(disk, waitLimit: configuration.transferTimeout)
        memory =
            configuration.shouldCacheImagesInMemory
            ? MemoryCache(
                maxMemoryCost: configuration.maxMemoryCost, maxMemoryCountLimit: configuration.maxMemoryCountLimit)
            : nil
        self.configuration = configuration
        self.cacheKeyFilter = cacheKeyFilter
    }

    /// The key of an image (SDWebImageManager's `cacheKeyForURL:`).
    public func key(for url: String) -> String { cacheKeyFilter?(url) ?? url }

    /// The name of an image in the cache.
    public func cacheKey(for url: String) -> CacheKey { CacheKey(key(for: url)) }

    /// Threads for file calls and verification, created on first use: most caches belong to a manager, which has its own.
    var pool: ThreadPool {
        threads.withLock { threads in
            if let threads { return threads }
            let made = ThreadPool(threads: max(2, Processors.count), name: "cache")
            threads = made
            return made
        }
    }
}

// MARK: - Directory

extension ImageCache {
    /// Directory of the shared cache: `$XDG_CACHE_HOME/prefetch`, or `~/.cache/prefetch`.
    /// - Throws: `invalidConfiguration` if the environment has neither.
    public static var defaultDirectory: String {
        get throws(WebImageError) {
            try defaultDirectory { name in getenv(name).map { String(cString: $0) } }
        }
    }

    /// XDG Base Directory Specification: relative paths are ignored.
    static func defaultDirectory(_ environment: (String) -> String?) throws(WebImageError) -> String {
        func folder(_ name: String) -> String? { environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
        if let cache = folder("XDG_CACHE_HOME") { return "\(cache)/prefetch" }
        if let home = folder("HOME") { return "\(home)/.cache/prefetch" }
        throw WebImageError(
            .invalidConfiguration,
            "neither XDG_CACHE_HOME nor HOME is an absolute path, so there is no default cache directory")
    }
}

// MARK: - Finding

// A manager's access to stored images. All methods block.
extension ImageCache {
    /// Finds an image. One below `level` is verified now, and raised or moved aside. One that cannot be verified is found only with `keep`.
    /// * `name`: that of `key`, if it is known.
    func find(
        _ key: String, named name: CacheKey? = nil, atLeast level: ValidationLevel,
        unverifiable: UnverifiableFormats = .skip, coder: ImageCoder
    ) throws(WebImageError) -> FoundImage? {
        let removals = memory?.removals
        guard let entry = try disk.find(forKey: key, named: name ?? CacheKey(key), atLeast: level) else { return nil }
        if !entry.needsVerification, let record = entry.record {
            return FoundImage(entry: entry, info: record.info, bytes: nil, removals: removals)
        }
        let proof = ImageProof(disk, level: level, unverifiable: unverifiable, coder: coder)
        guard let (info, bytes) = try proof.verify(entry) else {
            return nil
        }
        return FoundImage(entry: entry, info: info, bytes: bytes, removals: removals)
    }

    /// Reads an image, and adds it to memory if there is one. Nil if the file was truncated just now; it is moved aside.
    func memoryImage(of found: FoundImage, forKey key: String) throws(WebImageError) -> MemoryImage? {
        let bytes = try found.read()
        guard bytes.count == found.entry.size else {
            disk.images.moveAside(found.entry)
            return nil
        }
        let image = MemoryImage(bytes: bytes, info: found.info, digest: found.entry.record?.digest)
        if let removals = found.removals { memory?.offer(image, forKey: key, removals: removals) }
        return image
    }
}

// MARK: - Querying

extension ImageCache {
    /// Finds an image in memory or on disk (`queryCacheOperationForKey:done:`). Images found on disk are added to memory.
    /// - Returns: the image and where it was; nil if there is none.
    /// - Throws: `localFault` if the disk cannot be read; `cancelled` if the task was cancelled before disk access.
    public func queryImage(
        forKey key: String
    ) async throws(WebImageError) -> (image: MemoryImage, cacheType: ImageCacheType)? {
        if let image = imageFromMemoryCache(forKey: key) { return (image, .memory) }
        if Task.isCancelled { throw WebImageError(.cancelled, "the query was cancelled") }
        guard let image = try await imageFromDiskCache(forKey: key) else { return nil }
        return (image, .disk)
    }

    /// The image in memory; nil if there is none.
    public func imageFromMemoryCache(forKey key: String) -> MemoryImage? { memory?.image(forKey: key) }

    /// The image on disk, which is added to memory; nil if there is none. Damaged files are moved aside, ones below the level verified now.
    /// - Throws: `localFault` if the disk cannot be read.
    public func imageFromDiskCache(forKey key: String) async throws(WebImageError) -> MemoryImage? {
        try await pool.run { [self] () throws(WebImageError) -> MemoryImage? in
            let found = try find(key, atLeast: configuration.validation, coder: configuration.coder)
            guard let found else { return nil }
            return try memoryImage(of: found, forKey: key)
        }
    }

    /// Where an image is (`containsImageForKey:cacheType:completion:`): in memory, on disk, or `none`.
    public func containsImage(forKey key: String) async -> ImageCacheType {
        if memory?.contains(key) == true { return .memory }
        return await diskImageExists(forKey: key) ? .disk : .none
    }

    /// Whether the disk has an image, complete by its record or without one (`diskImageExistsWithKey:completion:`).
    public func diskImageExists(forKey key: String) async -> Bool {
        await pool.run { [self] in disk.existingPath(forKey: key) != nil }
    }

    /// Path of a key's file, even if it does not exist; nil without a key.
    public func cachePath(forKey key: String?) -> String? { key.map { disk.images.path(of: CacheKey($0)) } }

    /// Disk usage of all images in bytes, in blocks of 4 KiB; known without disk access: see ``CacheAccount/usage()``.
    /// - Throws: `localFault`.
    public func totalDiskSize() async throws(WebImageError) -> Int {
        try await pool.run { [self] () throws(WebImageError) in try disk.account.usage().size }
    }

    /// Number of images on disk; known like ``totalDiskSize()``.
    /// - Throws: `localFault`.
    public func totalDiskCount() async throws(WebImageError) -> Int {
        try await pool.run { [self] () throws(WebImageError) in try disk.account.usage().count }
    }
}

// MARK: - Storing

extension ImageCache {
    /// Verifies and stores an image, replacing that of the key (`storeImage:imageData:forKey:toDisk:completion:`).
    ///
    /// It is in memory before it is written to disk, and on disk when this returns.
    /// - Parameters:
    ///   - data: the encoded bytes.
    ///   - key: the result of ``key(for:)``, or any other text.
    ///   - toDisk: false keeps it only in memory, if the cache has one.
    /// - Throws: `badImageData` if it is not a valid image, then nothing is stored; `localFault` if only memory has it.
    public func store(_ data: [UInt8], forKey key: String, toDisk: Bool = true) async throws(WebImageError) {
        try await pool.run { [self] () throws(WebImageError) in
            let image = try verified(data)
            memory?.insert(image, forKey: key)
            if toDisk { try write(image, forKey: key) }
        }
    }

    /// Verifies and stores an image only on disk, replacing that of the key (`storeImageDataToDisk:forKey:`).
    /// - Throws: `badImageData`, `localFault`.
    public func storeImageDataToDisk(_ data: [UInt8], forKey key: String) async throws(WebImageError) {
        try await pool.run { [self] () throws(WebImageError) in
            try write(try verified(data), forKey: key)
            // Memory takes precedence and must not return the old image.
            memory?.remove(forKey: key)
        }
    }

    /// Encodes and stores a decoded image (`storeImage:forKey:toDisk:completion:`).
    /// - Parameters:
    ///   - bitmap: the image.
    ///   - format: JPEG or PNG; nil (default): PNG if it has alpha, otherwise JPEG.
    ///   - key: as for ``store(_:forKey:toDisk:)``.
    ///   - toDisk: as for ``store(_:forKey:toDisk:)``.
    /// - Throws: as ``ImageCoder/encode(_:as:quality:)`` and ``store(_:forKey:toDisk:)``; `invalidConfiguration` for GIF, which cannot be
    ///   written.
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
        try disk.images.store(
            ImageBody(image.bytes), for: CacheKey(key), record: CacheRecord(image), replacing: true)
    }
}

extension MemoryImage {
    /// Verifies bytes.
    /// - Throws: `badImageData` if they are not a valid image.
    init(verifying bytes: [UInt8], level: ValidationLevel, coder: ImageCoder) throws(WebImageError) {
        let info = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
            try coder.verify(bytes, level: level)
        }
        self.init(bytes: bytes, info: info, digest: SHA256.hash(bytes))
    }
}

extension CacheRecord {
    init(_ image: MemoryImage) {
        self.init(image.info, length: image.bytes.count, digest: image.digest, storedAt: WallClock.seconds)
    }
}

// MARK: - Removing

extension ImageCache {
    /// Removes an image from memory and, by default, from disk (`removeImageForKey:fromDisk:withCompletion:`).
    /// - Throws: `localFault` if it cannot be removed from disk.
    public func removeImage(forKey key: String, fromDisk: Bool = true) async throws(WebImageError) {
        memory?.remove(forKey: key)
        guard fromDisk else { return }
        // Again afterwards: a query may have found the file before its removal and added it to memory.
        defer { memory?.remove(forKey: key) }
        _ = try await pool.run { [self] () throws(WebImageError) in try disk.images.remove(CacheKey(key)) }
    }

    /// Removes every image from memory.
    public func clearMemory() { memory?.removeAll() }

    /// Removes old images from disk (`deleteOldFilesWithCompletionBlock:`): first those older than `maxDiskAge` by the date of
    /// `diskCacheExpireType`; then, if the rest takes more than `maxDiskSize`, the oldest until it takes less than half of that.
    ///
    /// Never called automatically. Images of a worker's running batch are kept.
    /// - Returns: what was removed and what is left; nil if another process is doing the same, and nothing was done.
    /// - Throws: `localFault`; `cancelled` if the task is cancelled, after some images may have been removed.
    @discardableResult
    public func deleteOldFiles() async throws(WebImageError) -> SweepReport? {
        let age = configuration.maxDiskAge < 0 ? nil : configuration.maxDiskAge
        let size = configuration.maxDiskSize > 0 ? configuration.maxDiskSize : nil
        return try await pool.run { [self] () throws(WebImageError) in
            // SDDiskCache continues until it is less than half.
            try disk.sweep.run(SweepRules(maxAge: age, maxSize: size, targetSize: size.map { $0 / 2 - 1 }))
        }
    }

    /// Removes every image from disk (`clearDiskOnCompletion:`), but not from memory. See ``ImageFiles/removeAll()``.
    /// - Returns: their number.
    /// - Throws: `localFault`; `cancelled` if the task is cancelled.
    @discardableResult
    public func clearDisk() async throws(WebImageError) -> Int {
        try await pool.run { [self] () throws(WebImageError) in try disk.images.removeAll() }
    }
}

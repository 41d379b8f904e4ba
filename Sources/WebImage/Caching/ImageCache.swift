internal import Glibc
internal import Threading

/// The cache of an image manager (SDImageCache): memory before disk, the keys, and the rule that an image is transferred once.
///
/// Whatever touches the disk is asynchronous and runs on threads of the cache's own, which start with the first such call.
public final class ImageCache: Sendable {
    /// Makes a key of an absolute URL; nil leaves the URL as it is.
    public typealias KeyFilter = @Sendable (_ url: String) -> String?

    /// The directory: the images on disk, unless the configuration has a `diskStore`, and the locks between processes.
    public let disk: DiskCache
    /// The images in memory; nil where `shouldCacheImagesInMemory` is false.
    public let memory: MemoryCache?
    /// How it works.
    public let configuration: Configuration
    /// What makes keys of URLs (SDWebImageManager's `cacheKeyFilter`); nil (default): the URL is the key, byte for byte.
    public let cacheKeyFilter: KeyFilter?
    /// One transfer per image over all processes.
    package let transfers: TransferLock
    private let threads = Locked<ThreadPool?>(nil)

    /// A cache in a directory of its own.
    /// - Throws: `localFault` with a sentence that names the directory.
    public init(
        directory: String, configuration: Configuration = Configuration(), cacheKeyFilter: KeyFilter? = nil
    ) throws(WebImageError) {
        disk = try DiskCache(directory: directory, configuration: configuration.disk)
        transfers = try TransferLock(disk, patience: configuration.transferPatience)
        memory =
            configuration.shouldCacheImagesInMemory
            ? configuration.memoryStore.map { MemoryCache($0) }
                ?? MemoryCache(
                    maxMemoryCost: configuration.maxMemoryCost, maxMemoryCountLimit: configuration.maxMemoryCountLimit)
            : nil
        self.configuration = configuration
        self.cacheKeyFilter = cacheKeyFilter
    }

    /// What has the images: the configuration's `diskStore`, or ``disk``.
    public var store: any DiskImageStore { configuration.diskStore ?? DirectoryImageStore(disk) }

    /// The key of an image (SDWebImageManager's `cacheKeyForURL:`).
    public func key(for url: String) -> String { cacheKeyFilter?(url) ?? url }

    /// The name of an image in the cache.
    public func cacheKey(for url: String) -> CacheKey { CacheKey(key(for: url)) }

    /// Threads for file calls and verification, made when they are first needed: most caches belong to a manager, which has its own.
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
    /// Where the shared cache is: `$XDG_CACHE_HOME/prefetch`, or `~/.cache/prefetch`.
    /// - Throws: `invalidConfiguration` where the environment names neither.
    public static var defaultDirectory: String {
        get throws(WebImageError) {
            try defaultDirectory { name in getenv(name).map { String(cString: $0) } }
        }
    }

    /// The XDG Base Directory Specification: a path that is not absolute is ignored.
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

// What a manager does with images beyond the memory, wherever they are kept. All of it blocks.
extension ImageCache {
    /// What there is under a key, verified. What passed less than `level` is verified now, and raised or taken out of the way. What cannot be
    /// verified stays, and is found only where such images are kept.
    func find(
        _ key: String, atLeast level: ValidationLevel, unverifiable: UnverifiableFormats = .skip, coder: ImageCoder
    ) throws(WebImageError) -> FoundImage? {
        if let store = configuration.diskStore { return try find(key, in: store, level, unverifiable, coder) }
        guard let entry = try disk.find(forKey: key, atLeast: level) else { return nil }
        if !entry.needsVerification, let record = entry.record {
            return FoundImage(place: .file(entry), info: ImageInfo(record), bytes: nil)
        }
        let call = disk.folder.calls.begin()
        let read = Result { () throws(WebImageError) in try entry.bytes() }
        disk.folder.calls.end(call)
        let bytes = try read.get()
        let info: ImageInfo
        do throws(WebImageError) {
            info = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                try coder.verify(bytes, level: level, unverifiable: unverifiable)
            }
        } catch {
            if error.code == .localFault { throw error }
            guard error.code == .badImageData else { return nil }
            disk.images.moveAside(entry)
            return nil
        }
        // What was kept although it cannot be verified passes no more than before.
        if entry.record.map({ $0.level < info.level }) ?? true { _ = try disk.images.raise(entry, to: info) }
        return FoundImage(place: .file(entry), info: info, bytes: bytes)
    }

    /// The record says what somebody's store kept: it counts for the bytes that have its digest, and those are read in any case.
    func find(
        _ key: String, in store: any DiskImageStore, _ level: ValidationLevel,
        _ unverifiable: UnverifiableFormats, _ coder: ImageCoder
    ) throws(WebImageError) -> FoundImage? {
        guard var image = try store.image(forKey: key) else { return nil }
        let (body, record) = (image.body, image.record)
        do throws(WebImageError) {
            let (info, digest) = try body.withUnsafeBytes { bytes throws(WebImageError) in
                let digest = record?.digest == nil ? nil : SHA256.hash(bytes)
                guard (record?.length ?? bytes.count) == bytes.count, record?.digest == digest else {
                    throw WebImageError(.badImageData, "other bytes than those that were stored")
                }
                if let record, digest != nil, record.level >= level { return (ImageInfo(record), digest) }
                return (try coder.verify(bytes, level: level, unverifiable: unverifiable), digest)
            }
            if (record?.level ?? .none) < info.level {
                image.record = CacheRecord(
                    info, length: body.count, digest: digest, storedAt: record?.storedAt ?? WallClock.seconds)
                if let record = image.record {
                    try store.describe(record: record, validators: image.validators, forKey: key)
                }
            }
            return FoundImage(place: .stored(image, path: store.path(forKey: key)), info: info, bytes: nil)
        } catch {
            if error.code == .localFault { throw error }
            guard error.code == .badImageData else { return nil }
            try store.remove(forKey: key)
            return nil
        }
    }

    /// Reads what was found; nil where somebody has cut the file short, which is taken out of the way.
    func memoryImage(of found: FoundImage, _ key: String) throws(WebImageError) -> MemoryImage? {
        let bytes = try found.read()
        guard bytes.count == found.size else {
            try discard(found, key)
            return nil
        }
        return MemoryImage(bytes: bytes, info: found.info, digest: found.record?.digest)
    }

    /// Takes a damaged image out of the way: from now on it is a miss.
    func discard(_ found: FoundImage, _ key: String) throws(WebImageError) {
        switch found.place {
        case .file(let entry): disk.images.moveAside(entry)
        case .stored: try configuration.diskStore?.remove(forKey: key)
        }
    }

    /// Whether there is an image that passed at least this level, by its record alone.
    func has(_ key: String, atLeast level: ValidationLevel) throws(WebImageError) -> Bool {
        guard let store = configuration.diskStore else {
            return try disk.find(forKey: key, atLeast: level).map { !$0.needsVerification } ?? false
        }
        guard let record = try store.image(forKey: key)?.record else { return false }
        return record.digest != nil && record.level >= level
    }

    /// The digest of what is there, whatever state it is in.
    func digest(forKey key: String) throws(WebImageError) -> Digest? {
        guard let store = configuration.diskStore else {
            return try disk.find(forKey: key, atLeast: .none)?.knownDigest()
        }
        return try store.image(forKey: key)?.body.withUnsafeBytes { bytes throws(WebImageError) in
            SHA256.hash(bytes)
        }
    }

    /// Where the image of a key is; nil where there is none, or none in a file.
    func existingPath(forKey key: String) -> String? {
        guard let store = configuration.diskStore else { return disk.existingPath(forKey: key) }
        return store.contains(key) ? store.path(forKey: key) : nil
    }
}

extension ImageInfo {
    /// What a record says.
    fileprivate init(_ record: CacheRecord) {
        self.init(format: record.format, width: record.width, height: record.height, level: record.level)
    }
}

// MARK: - Querying

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
    /// See ``CacheAccount/usage()``.
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

// MARK: - Storing

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
        try publish(
            body, CacheRecord(image), HTTPValidators(key: key), for: CacheKey(key), forKey: key, replacing: true)
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

extension CacheRecord {
    /// The record of an image that is stored now.
    init(_ image: MemoryImage) {
        self.init(image.info, length: image.bytes.count, digest: image.digest, storedAt: WallClock.seconds)
    }
}

// MARK: - Publishing

extension ImageCache {
    /// Puts a verified image where images are kept. Into the directory a body that has gone to a file goes without a copy. Blocks.
    ///
    /// * `name`: that of `key`.
    func publish(
        _ body: ImageBody, _ record: CacheRecord, _ validators: HTTPValidators?, for name: CacheKey, forKey key: String,
        replacing: Bool, keepsValidators: Bool = false
    ) throws(WebImageError) {
        guard let store = configuration.diskStore else {
            try disk.images.store(
                body, for: name, record: record, validators: validators, replacing: replacing,
                keepsValidators: keepsValidators)
            return
        }
        let keeps = keepsValidators || configuration.disk.keepsHTTPValidators
        try store.store(
            StoredImage(body: body, record: record, validators: keeps ? validators : nil), forKey: key)
    }

    /// Where an image is that was published; nil where the store has no files.
    func publishedPath(_ name: CacheKey, forKey key: String) -> String? {
        guard let store = configuration.diskStore else { return disk.images.path(of: name) }
        return store.path(forKey: key)
    }

    /// Makes what was stored survive a power cut, as far as the configuration asks for it; a store of somebody else's does so by itself.
    func sync() throws(WebImageError) {
        if configuration.diskStore == nil { try disk.sync() }
    }

    /// What is known of an image for the next request.
    func validators(of found: FoundImage) -> HTTPValidators? {
        switch found.place {
        case .file(let entry): disk.images.validators(of: entry)
        case .stored(let image, _): image.validators
        }
    }

    /// Notes that the server still has this very image: it is as young as one that was fetched now.
    /// - Returns: false where it is not there any more.
    func renew(_ found: FoundImage, _ validators: HTTPValidators, forKey key: String) throws(WebImageError) -> Bool {
        switch found.place {
        case .file(let entry): return try disk.images.renew(entry, validators: validators)
        case .stored(let image, _):
            guard let store = configuration.diskStore, store.contains(key), var record = image.record else {
                return false
            }
            record.storedAt = WallClock.seconds
            try store.describe(record: record, validators: validators, forKey: key)
            return true
        }
    }
}

// MARK: - Removing

extension ImageCache {
    /// Removes an image from memory and, by default, from the disk (`removeImageForKey:fromDisk:withCompletion:`).
    /// - Throws: `localFault` where it cannot be removed from the disk.
    public func removeImage(forKey key: String, fromDisk: Bool = true) async throws(WebImageError) {
        memory?.remove(forKey: key)
        guard fromDisk else { return }
        // Again afterwards: a query may have found the file before it went, and put it into memory.
        defer { memory?.remove(forKey: key) }
        try await pool.run { [self] () throws(WebImageError) in try store.remove(forKey: key) }
    }

    /// Removes every image from memory.
    public func clearMemory() { memory?.removeAll() }

    /// Removes old images from the disk (`deleteOldFilesWithCompletionBlock:`): first each one older than `maxDiskAge` by the date that
    /// `diskCacheExpireType` names; then, where the rest takes more than `maxDiskSize`, the oldest until it takes less than half of that.
    ///
    /// Nothing calls it by itself. What a running batch of a worker has fetched stays.
    /// - Returns: what went and what is left; nil where another process is just doing the same, nothing was done then.
    /// - Throws: `localFault`; `cancelled` where the task is, what was removed until then is gone.
    @discardableResult
    public func deleteOldFiles() async throws(WebImageError) -> SweepReport? {
        let age = configuration.maxDiskAge < 0 ? nil : configuration.maxDiskAge
        let size = configuration.maxDiskSize > 0 ? configuration.maxDiskSize : nil
        return try await pool.run { [self] () throws(WebImageError) in
            try store.removeExpired(olderThan: age, beyond: size)
        }
    }

    /// Removes every image from the disk (`clearDiskOnCompletion:`); memory stays. See ``ImageFiles/removeAll()``, or what the store does.
    /// - Returns: how many.
    /// - Throws: `localFault`; `cancelled` where the task is.
    @discardableResult
    public func clearDisk() async throws(WebImageError) -> Int {
        try await pool.run { [self] () throws(WebImageError) in try store.removeAll() }
    }
}

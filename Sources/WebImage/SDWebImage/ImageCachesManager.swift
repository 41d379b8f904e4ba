internal import Threading

/// Combines several image caches (SDImageCachesManager), such as an application's own and a bundled one, or a fast disk and a large one.
///
/// The cache added last has the highest priority. An operation's policy selects the caches and their order; images are not copied between
/// them.
///
/// An ``ImageManager`` uses it as the `diskStore` of its ``ImageCache``, which keeps memory, keys and locks:
///
///     var configuration = ImageCache.Configuration()
///     configuration.diskStore = ImageCachesManager([bundled, own])
///     let manager = try ImageManager(cache: ImageCache(directory: directory, configuration: configuration))
///
/// For read-only directories prefer ``DiskCache/Configuration/readOnlyDirectories``, which workers and the commands support too: one cache,
/// one memory, and behind it unchanged directories, searched in order on the same thread. Here every cache is a complete one, with its own
/// memory, store and limits, and is written, removed and cleared by the policies.
public final class ImageCachesManager: Sendable {
    /// Which caches an operation uses (SDImageCachesManagerOperationPolicy).
    public enum OperationPolicy: String, Sendable, CaseIterable {
        /// All, in order from the highest priority to the lowest; a query ends at the first cache with the image.
        case serial
        /// All concurrently; a query ends with the first positive answer. Memory is searched before any disk, by priority.
        case concurrent
        /// The one with the highest priority.
        case highestOnly
        /// The one with the lowest priority.
        case lowestOnly
    }

    /// The policies, with SDWebImage's defaults.
    public struct Configuration: Sendable {
        /// For queries; default `serial`.
        public var queryOperationPolicy = OperationPolicy.serial
        /// For storing; default `highestOnly`.
        public var storeOperationPolicy = OperationPolicy.highestOnly
        /// For removing; default `concurrent`.
        public var removeOperationPolicy = OperationPolicy.concurrent
        /// For `contains`; default `serial`.
        public var containsOperationPolicy = OperationPolicy.serial
        /// For clearing; default `concurrent`.
        public var clearOperationPolicy = OperationPolicy.concurrent

        /// The default policies.
        public init() {}

        /// The same policy for every operation.
        public init(all policy: OperationPolicy) {
            queryOperationPolicy = policy
            storeOperationPolicy = policy
            removeOperationPolicy = policy
            containsOperationPolicy = policy
            clearOperationPolicy = policy
        }
    }

    /// The policies.
    public let configuration: Configuration
    private let list: Locked<[ImageCache]>

    /// Creates a manager; without caches nothing is found or kept.
    /// * `caches`: from the lowest priority to the highest.
    public init(_ caches: [ImageCache] = [], configuration: Configuration = Configuration()) {
        list = Locked(caches)
        self.configuration = configuration
    }

    /// The caches, from the lowest priority to the highest. An operation uses those present when it starts.
    public var caches: [ImageCache] {
        get { list.withLock { $0 } }
        set { list.withLock { $0 = newValue } }
    }

    /// Adds a cache with the highest priority.
    public func addCache(_ cache: ImageCache) { list.withLock { $0.append(cache) } }

    /// Removes a cache; it keeps its images.
    public func removeCache(_ cache: ImageCache) { list.withLock { $0.removeAll { $0 === cache } } }

    func caches(for policy: OperationPolicy) -> [ImageCache] {
        let caches = Array(caches.reversed())
        switch policy {
        case .serial, .concurrent: return caches
        case .highestOnly: return Array(caches.prefix(1))
        case .lowestOnly: return Array(caches.suffix(1))
        }
    }

    /// The first answer. A failing cache counts as one without the image; if no other has it, its error is thrown.
    func first<Answer: Sendable>(
        _ policy: OperationPolicy,
        _ ask: @escaping @Sendable (ImageCache) async throws(WebImageError) -> Answer?
    ) async throws(WebImageError) -> Answer? {
        let caches = caches(for: policy)
        if policy == .concurrent, caches.count > 1 { return try await fastest(caches, ask) }
        var fault: WebImageError?
        for cache in caches {
            if Task.isCancelled { throw Self.cancelled }
            do throws(WebImageError) {
                if let answer = try await ask(cache) { return answer }
            } catch {
                if error.code == .cancelled { throw error }
                fault = fault ?? error
            }
        }
        if let fault { throw fault }
        return nil
    }

    /// Unstructured tasks: a task group would wait for the slow ones too.
    private func fastest<Answer: Sendable>(
        _ caches: [ImageCache], _ ask: @escaping @Sendable (ImageCache) async throws(WebImageError) -> Answer?
    ) async throws(WebImageError) -> Answer? {
        if Task.isCancelled { throw Self.cancelled }
        let (answers, continuation) = AsyncStream.makeStream(of: Result<Answer?, WebImageError>.self)
        let tasks = caches.map { cache in
            Task {
                do throws(WebImageError) {
                    continuation.yield(.success(try await ask(cache)))
                } catch {
                    continuation.yield(.failure(error))
                }
            }
        }
        defer { for task in tasks { task.cancel() } }
        var fault: WebImageError?
        var pending = caches.count
        for await answer in answers {
            switch answer {
            case .success(let answer?): return answer
            case .success(nil): break
            case .failure(let error): fault = fault ?? error
            }
            pending -= 1
            if pending == 0 { break }
        }
        // The stream ends early if the task is cancelled.
        if pending > 0 { throw Self.cancelled }
        if let fault { throw fault }
        return nil
    }

    /// Applies an action to each cache, even if it fails for others.
    /// - Throws: the error of the highest priority, after all are done.
    func each<Answer: Sendable>(
        _ policy: OperationPolicy, _ act: @escaping @Sendable (ImageCache) async throws(WebImageError) -> Answer
    ) async throws(WebImageError) -> [Answer] {
        let caches = caches(for: policy)
        let act = { @Sendable (cache: ImageCache) async -> Result<Answer, WebImageError> in
            do throws(WebImageError) { return .success(try await act(cache)) } catch { return .failure(error) }
        }
        var results: [Int: Result<Answer, WebImageError>] = [:]
        if policy == .concurrent {
            await withTaskGroup(of: (Int, Result<Answer, WebImageError>).self) { group in
                for (index, cache) in caches.enumerated() { group.addTask { (index, await act(cache)) } }
                for await (index, result) in group { results[index] = result }
            }
        } else {
            for (index, cache) in caches.enumerated() { results[index] = await act(cache) }
        }
        var answers: [Answer] = []
        for index in caches.indices { if let result = results[index] { answers.append(try result.get()) } }
        return answers
    }

    private static var cancelled: WebImageError { WebImageError(.cancelled, "the query was cancelled") }
}

// MARK: - Operations

extension ImageCachesManager {
    /// Finds an image in the caches' memories or on their disks (`queryImageForKey:options:context:cacheType:completion:`). Images found on
    /// disk are added to memory.
    ///
    /// With `concurrent` it returns the first image, whatever its cache's priority, and the other caches are cancelled: one that is already
    /// reading continues and adds the image to its own memory.
    /// - Returns: the image and whether it was in memory or on disk; nil if no cache has it.
    /// - Throws: `cancelled` if the task is cancelled: with `serial` before the next cache, with `concurrent` immediately; `localFault` if
    ///   a cache cannot be read and no other has the image.
    public func queryImage(
        forKey key: String
    ) async throws(WebImageError) -> (image: MemoryImage, cacheType: ImageCacheType)? {
        if configuration.queryOperationPolicy == .concurrent {
            for cache in caches(for: .concurrent) {
                if let image = cache.imageFromMemoryCache(forKey: key) { return (image, .memory) }
            }
        }
        return try await first(configuration.queryOperationPolicy) { cache throws(WebImageError) in
            try await cache.queryImage(forKey: key)
        }
    }

    /// Where an image is (`containsImageForKey:cacheType:completion:`): in a cache's memory, on its disk, or `none`. Like
    /// ``queryImage(forKey:)``, with its own policy; `none` if the task is cancelled.
    public func containsImage(forKey key: String) async -> ImageCacheType {
        if configuration.containsOperationPolicy == .concurrent {
            for cache in caches(for: .concurrent) where cache.memory?.contains(key) == true { return .memory }
        }
        let found = try? await first(configuration.containsOperationPolicy) { cache throws(WebImageError) in
            let type = await cache.containsImage(forKey: key)
            return type == .none ? nil : type
        }
        return found ?? .none
    }

    /// Verifies and stores an image, replacing that of the key (`storeImage:imageData:forKey:cacheType:completion:`). Each cache verifies
    /// it by its own configuration. Not cancellable: every selected cache gets it.
    /// - Parameters:
    ///   - data: the encoded bytes.
    ///   - key: a URL, or any other text.
    ///   - toDisk: false keeps it only in memory.
    /// - Throws: as ``ImageCache/store(_:forKey:toDisk:)``, after all caches are done: the error of the highest priority.
    public func store(_ data: [UInt8], forKey key: String, toDisk: Bool = true) async throws(WebImageError) {
        _ = try await each(configuration.storeOperationPolicy) { cache throws(WebImageError) in
            try await cache.store(data, forKey: key, toDisk: toDisk)
        }
    }

    /// Verifies and stores an image only on disk, otherwise like ``store(_:forKey:toDisk:)``.
    /// - Throws: `badImageData`, `localFault`.
    public func storeImageDataToDisk(_ data: [UInt8], forKey key: String) async throws(WebImageError) {
        _ = try await each(configuration.storeOperationPolicy) { cache throws(WebImageError) in
            try await cache.storeImageDataToDisk(data, forKey: key)
        }
    }

    /// Removes an image from memory and, by default, from disk (`removeImageForKey:cacheType:completion:`). Not cancellable.
    /// - Throws: `localFault`, after all caches are done.
    public func removeImage(forKey key: String, fromDisk: Bool = true) async throws(WebImageError) {
        _ = try await each(configuration.removeOperationPolicy) { cache throws(WebImageError) in
            try await cache.removeImage(forKey: key, fromDisk: fromDisk)
        }
    }

    /// Removes every image from the memories (`clearWithCacheType:completion:`).
    public func clearMemory() {
        for cache in caches(for: configuration.clearOperationPolicy) { cache.clearMemory() }
    }

    /// Removes every image from the disks, but not from the memories (`clearWithCacheType:completion:`).
    /// - Returns: their number.
    /// - Throws: `localFault`, after all caches are done; `cancelled` if the task is cancelled, after some images may have been removed.
    @discardableResult
    public func clearDisk() async throws(WebImageError) -> Int {
        try await each(configuration.clearOperationPolicy) { cache throws(WebImageError) in
            try await cache.clearDisk()
        }.reduce(0, +)
    }
}

// MARK: - ImageStore

/// The caches' disks as one store for the ``ImageCache`` of an ``ImageManager``, by the same policies; memory is that cache's.
///
/// A damaged image is removed from its cache, and the other caches are searched.
extension ImageCachesManager: DiskImageStore {
    /// Uses the policy for `contains`.
    public func contains(_ key: String) -> Bool {
        BlockingLatch.value { [self] in
            let found = try? await first(configuration.containsOperationPolicy) { cache throws(WebImageError) in
                await cache.diskImageExists(forKey: key) ? true : nil
            }
            return found ?? false
        }
    }

    /// Uses the policy for queries.
    /// - Throws: `localFault` if a cache cannot be read and no other has the image.
    public func image(forKey key: String) throws(WebImageError) -> StoredImage? {
        try waiting { [self] () throws(WebImageError) in
            try await first(configuration.queryOperationPolicy) { cache throws(WebImageError) in
                try await cache.pool.run { () throws(WebImageError) -> StoredImage? in
                    // Checks only that the bytes are those stored: the caller verifies.
                    let found = try cache.find(key, in: cache.store, .none, .skip, cache.configuration.coder)
                    guard case .stored(let image, _)? = found?.place else { return nil }
                    return image
                }
            }
        }
    }

    /// Uses the policy for storing.
    /// - Throws: `localFault`, after all caches are done.
    public func store(_ image: StoredImage, forKey key: String) throws(WebImageError) {
        _ = try waiting { [self] () throws(WebImageError) in
            try await each(configuration.storeOperationPolicy) { cache throws(WebImageError) in
                try await cache.pool.run { () throws(WebImageError) in
                    // Memory takes precedence and must not return the old image.
                    defer { cache.memory?.remove(forKey: key) }
                    try cache.store.store(image, forKey: key)
                }
            }
        }
    }

    /// Updates every cache with exactly these bytes, sequentially.
    /// - Throws: `localFault`.
    public func describe(
        record: CacheRecord, validators: HTTPValidators?, forKey key: String
    ) throws(WebImageError) {
        for cache in caches(for: .serial) {
            guard let image = try cache.store.image(forKey: key), image.body.count == record.length else { continue }
            if let digest = record.digest {
                let actual = try image.body.withUnsafeBytes { bytes throws(WebImageError) in SHA256.hash(bytes) }
                guard actual == digest else { continue }
            }
            try cache.store.describe(record: record, validators: validators, forKey: key)
        }
    }

    /// Uses the policy for removing.
    /// - Throws: `localFault`, after all caches are done.
    public func remove(forKey key: String) throws(WebImageError) {
        _ = try waiting { [self] () throws(WebImageError) in
            try await each(configuration.removeOperationPolicy) { cache throws(WebImageError) in
                try await cache.removeImage(forKey: key)
            }
        }
    }

    /// Uses the policy for clearing.
    /// - Throws: `localFault`, after all caches are done.
    public func removeAll() throws(WebImageError) -> Int {
        try waiting { [self] () throws(WebImageError) in try await clearDisk() }
    }

    /// Applies the limits to every cache individually, sequentially.
    /// - Throws: `localFault`; `cancelled` if the task is cancelled.
    public func removeExpired(olderThan age: Double?, beyond size: Int?) throws(WebImageError) -> SweepReport? {
        var sum: SweepReport?
        for cache in caches(for: .serial) {
            guard let report = try cache.store.removeExpired(olderThan: age, beyond: size) else { continue }
            sum = (sum ?? SweepReport()) + report
        }
        return sum
    }

    /// The sum over all caches.
    /// - Throws: `localFault`.
    public func diskUsage() throws(WebImageError) -> (count: Int, size: Int) {
        var sum = (count: 0, size: 0)
        for cache in caches {
            let usage = try cache.store.diskUsage()
            sum = (sum.count + usage.count, sum.size + usage.size)
        }
        return sum
    }

    /// In the first cache with the image; otherwise in the one that would store it.
    public func path(forKey key: String) -> String? {
        let holder = caches(for: configuration.queryOperationPolicy).first { $0.store.contains(key) }
        return (holder ?? caches(for: configuration.storeOperationPolicy).first)?.store.path(forKey: key)
    }

    private func waiting<Answer: Sendable>(
        _ body: @escaping @Sendable () async throws(WebImageError) -> Answer
    ) throws(WebImageError) -> Answer {
        try BlockingLatch.value { () async -> Result<Answer, WebImageError> in
            do throws(WebImageError) { return .success(try await body()) } catch { return .failure(error) }
        }.get()
    }
}

extension SweepReport {
    fileprivate static func + (lhs: SweepReport, rhs: SweepReport) -> SweepReport {
        func sum(_ one: Sum, _ other: Sum) -> Sum {
            Sum(count: one.count + other.count, size: one.size + other.size)
        }
        var report = SweepReport()
        report.expired = sum(lhs.expired, rhs.expired)
        report.evicted = sum(lhs.evicted, rhs.evicted)
        report.spared = sum(lhs.spared, rhs.spared)
        report.remaining = sum(lhs.remaining, rhs.remaining)
        report.temporaryFiles = lhs.temporaryFiles + rhs.temporaryFiles
        report.movedAside = lhs.movedAside + rhs.movedAside
        return report
    }
}

internal import Threading

/// Several image caches as one (SDImageCachesManager): an application's own before one that comes with it, a fast disk before a large one.
///
/// The cache that was added last has the highest priority. Each operation has its policy, which says which caches it is for and in which
/// order; what is found in one cache is not copied into another.
///
/// An ``ImageManager`` uses it in place of one cache as the `diskStore` of its ``ImageCache``, which then has the memory, the keys and the
/// locks, so that nothing of the manager differs:
///
///     var configuration = ImageCache.Configuration()
///     configuration.diskStore = ImageCachesManager([bundled, own])
///     let manager = try ImageManager(cache: ImageCache(directory: directory, configuration: configuration))
///
/// For directories that are only looked up ``DiskCache/Configuration/readOnlyDirectories`` is the better means, which workers and the
/// commands have too: one cache, one memory, and behind it directories in which nothing is ever changed, asked in their order and on the same
/// thread. Here every cache is a whole one, with a memory, a store and limits of its own, and is written, removed and cleared as the policies say.
public final class ImageCachesManager: Sendable {
    /// For which caches an operation is (SDImageCachesManagerOperationPolicy).
    public enum OperationPolicy: String, Sendable, CaseIterable {
        /// For all, one after the other from the highest priority to the lowest; a question ends with the first cache that has the image.
        case serial
        /// For all at once; a question ends with the cache that answers first that it has the image. Memory is asked before any disk, from
        /// the highest priority to the lowest.
        case concurrent
        /// For the one with the highest priority.
        case highestOnly
        /// For the one with the lowest priority.
        case lowestOnly
    }

    /// The policies, with SDWebImage's defaults.
    public struct Configuration: Sendable {
        /// Of looking for an image; `serial` by default.
        public var queryOperationPolicy = OperationPolicy.serial
        /// Of storing one; `highestOnly` by default.
        public var storeOperationPolicy = OperationPolicy.highestOnly
        /// Of removing one; `concurrent` by default.
        public var removeOperationPolicy = OperationPolicy.concurrent
        /// Of asking where one is; `serial` by default.
        public var containsOperationPolicy = OperationPolicy.serial
        /// Of removing all; `concurrent` by default.
        public var clearOperationPolicy = OperationPolicy.concurrent

        /// The defaults.
        public init() {}

        /// One policy for every operation.
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

    /// A manager of some caches; without any nothing is found and nothing kept.
    ///
    /// * `caches`: from the lowest priority to the highest.
    public init(_ caches: [ImageCache] = [], configuration: Configuration = Configuration()) {
        list = Locked(caches)
        self.configuration = configuration
    }

    /// The caches, from the lowest priority to the highest. An operation is for those that are there when it begins.
    public var caches: [ImageCache] {
        get { list.withLock { $0 } }
        set { list.withLock { $0 = newValue } }
    }

    /// Adds a cache, with the highest priority.
    public func addCache(_ cache: ImageCache) { list.withLock { $0.append(cache) } }

    /// Takes a cache out; its images stay in it.
    public func removeCache(_ cache: ImageCache) { list.withLock { $0.removeAll { $0 === cache } } }

    /// For which caches an operation is, the highest priority first.
    func caches(for policy: OperationPolicy) -> [ImageCache] {
        let caches = Array(caches.reversed())
        switch policy {
        case .serial, .concurrent: return caches
        case .highestOnly: return Array(caches.prefix(1))
        case .lowestOnly: return Array(caches.suffix(1))
        }
    }

    /// The first answer that is one. A cache at fault counts as one that has not the image; where no other has it, that is not known, and its fault is
    /// thrown.
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

    /// Tasks of their own and no task group, which would wait for the slow ones too.
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
        // The stream ends early for a task that is cancelled.
        if pending > 0 { throw Self.cancelled }
        if let fault { throw fault }
        return nil
    }

    /// Does something to each cache, whatever happens to the others.
    /// - Throws: the fault of the highest priority, when all have been done.
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
    /// Finds an image in the caches' memories or on their disks (`queryImageForKey:options:context:cacheType:completion:`). What a cache found
    /// on its disk is in its memory afterwards.
    ///
    /// With `concurrent` this returns with the first image that comes, whichever priority its cache has, and the other caches are told to stop: one
    /// that is reading already goes on and keeps what it reads in its own memory.
    /// - Returns: the image and whether it was in memory or on disk; nil where no cache has it.
    /// - Throws: `cancelled` where the task is: with `serial` no further cache is asked, with `concurrent` at once; `localFault` where a cache
    ///   cannot be read and no other has the image.
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

    /// Where an image is (`containsImageForKey:cacheType:completion:`): in the memory of a cache, on its disk, or `none`. As
    /// ``queryImage(forKey:)`` asks, by the policy for this; a task that is cancelled hears `none`.
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

    /// Verifies an image and stores it, in place of what is under its key (`storeImage:imageData:forKey:cacheType:completion:`). Each cache verifies it
    /// as its configuration says. Not cancelled halfway: every cache that the policy names gets it.
    /// - Parameters:
    ///   - data: the encoded bytes.
    ///   - key: a URL, or any other text.
    ///   - toDisk: false keeps it in memory alone.
    /// - Throws: as ``ImageCache/store(_:forKey:toDisk:)``, when every cache has been told: the error of the highest priority.
    public func store(_ data: [UInt8], forKey key: String, toDisk: Bool = true) async throws(WebImageError) {
        _ = try await each(configuration.storeOperationPolicy) { cache throws(WebImageError) in
            try await cache.store(data, forKey: key, toDisk: toDisk)
        }
    }

    /// Verifies an image and stores it on disk alone, otherwise as ``store(_:forKey:toDisk:)``.
    /// - Throws: `badImageData`, `localFault`.
    public func storeImageDataToDisk(_ data: [UInt8], forKey key: String) async throws(WebImageError) {
        _ = try await each(configuration.storeOperationPolicy) { cache throws(WebImageError) in
            try await cache.storeImageDataToDisk(data, forKey: key)
        }
    }

    /// Removes an image from memory and, by default, from the disk (`removeImageForKey:cacheType:completion:`). Not cancelled halfway.
    /// - Throws: `localFault`, when every cache has been told.
    public func removeImage(forKey key: String, fromDisk: Bool = true) async throws(WebImageError) {
        _ = try await each(configuration.removeOperationPolicy) { cache throws(WebImageError) in
            try await cache.removeImage(forKey: key, fromDisk: fromDisk)
        }
    }

    /// Removes every image from the memories (`clearWithCacheType:completion:`).
    public func clearMemory() {
        for cache in caches(for: configuration.clearOperationPolicy) { cache.clearMemory() }
    }

    /// Removes every image from the disks; the memories stay (`clearWithCacheType:completion:`).
    /// - Returns: how many.
    /// - Throws: `localFault`, when every cache has been told; `cancelled` where the task is, what was removed until then is gone.
    @discardableResult
    public func clearDisk() async throws(WebImageError) -> Int {
        try await each(configuration.clearOperationPolicy) { cache throws(WebImageError) in
            try await cache.clearDisk()
        }.reduce(0, +)
    }
}

// MARK: - ImageStore

/// The caches' disks as one store, for the ``ImageCache`` of an ``ImageManager``: by the same policies, while the memory is that cache's.
///
/// What is damaged in one cache is removed from that one, and the others are asked.
extension ImageCachesManager: DiskImageStore {
    /// By the policy of `contains`.
    public func contains(_ key: String) -> Bool {
        BlockingLatch.value { [self] in
            let found = try? await first(configuration.containsOperationPolicy) { cache throws(WebImageError) in
                await cache.diskImageExists(forKey: key) ? true : nil
            }
            return found ?? false
        }
    }

    /// By the policy of `query`.
    /// - Throws: `localFault` where a cache cannot be read and no other has the image.
    public func image(forKey key: String) throws(WebImageError) -> StoredImage? {
        try waiting { [self] () throws(WebImageError) in
            try await first(configuration.queryOperationPolicy) { cache throws(WebImageError) in
                try await cache.pool.run { () throws(WebImageError) -> StoredImage? in
                    // No more than that they are the bytes that were stored: who asks verifies.
                    let found = try cache.find(key, in: cache.store, .none, .skip, cache.configuration.coder)
                    guard case .stored(let image, _)? = found?.place else { return nil }
                    return image
                }
            }
        }
    }

    /// By the policy of `store`.
    /// - Throws: `localFault`, when every cache has been told.
    public func store(_ image: StoredImage, forKey key: String) throws(WebImageError) {
        _ = try waiting { [self] () throws(WebImageError) in
            try await each(configuration.storeOperationPolicy) { cache throws(WebImageError) in
                try await cache.pool.run { () throws(WebImageError) in
                    // Memory is asked first, and must not answer with what was there before.
                    defer { cache.memory?.remove(forKey: key) }
                    try cache.store.store(image, forKey: key)
                }
            }
        }
    }

    /// Where a cache has those very bytes, one after the other.
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

    /// By the policy of `remove`.
    /// - Throws: `localFault`, when every cache has been told.
    public func remove(forKey key: String) throws(WebImageError) {
        _ = try waiting { [self] () throws(WebImageError) in
            try await each(configuration.removeOperationPolicy) { cache throws(WebImageError) in
                try await cache.removeImage(forKey: key)
            }
        }
    }

    /// By the policy of `clear`.
    /// - Throws: `localFault`, when every cache has been told.
    public func removeAll() throws(WebImageError) -> Int {
        try waiting { [self] () throws(WebImageError) in try await clearDisk() }
    }

    /// From every cache, one after the other: each may take as much as is said.
    /// - Throws: `localFault`; `cancelled` where the task is.
    public func removeExpired(olderThan age: Double?, beyond size: Int?) throws(WebImageError) -> SweepReport? {
        var sum: SweepReport?
        for cache in caches(for: .serial) {
            guard let report = try cache.store.removeExpired(olderThan: age, beyond: size) else { continue }
            sum = (sum ?? SweepReport()) + report
        }
        return sum
    }

    /// Of all caches together.
    /// - Throws: `localFault`.
    public func diskUsage() throws(WebImageError) -> (count: Int, size: Int) {
        var sum = (count: 0, size: 0)
        for cache in caches {
            let usage = try cache.store.diskUsage()
            sum = (sum.count + usage.count, sum.size + usage.size)
        }
        return sum
    }

    /// In the first cache that has the image; where none has, in the one that would get it.
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

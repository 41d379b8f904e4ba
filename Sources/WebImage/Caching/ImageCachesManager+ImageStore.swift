internal import Threading

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

/// A cache directory as an image store, for stores that add their own behaviour to it. ``ImageCache`` itself uses its directory without
/// this, and so without reading bytes unnecessarily.
public struct DirectoryImageStore: DiskImageStore {
    let disk: DiskCache

    /// Wraps a cache directory.
    public init(_ disk: DiskCache) { self.disk = disk }

    /// As in ``DiskCache/existingPath(forKey:)``.
    public func contains(_ key: String) -> Bool { disk.existingPath(forKey: key) != nil }

    /// Reads an image of any level, also from a read-only tier.
    /// - Throws: `localFault`.
    public func image(forKey key: String) throws(WebImageError) -> StoredImage? {
        guard let entry = try disk.find(forKey: key, atLeast: .none) else { return nil }
        return StoredImage(
            body: ImageBody(try entry.bytes()), record: entry.record, validators: disk.images.validators(of: entry))
    }

    /// Stores an image, replacing that of the key. Without a record nothing is known about it.
    /// - Throws: `localFault`.
    public func store(_ image: StoredImage, forKey key: String) throws(WebImageError) {
        let unknown = CacheRecord(
            level: .none, format: .unknown, length: image.body.count, digest: nil, storedAt: WallClock.seconds)
        try disk.images.store(
            image.body, for: CacheKey(key), record: image.record ?? unknown, validators: image.validators,
            replacing: true, keepsValidators: image.validators != nil)
    }

    /// Updates the record and, if given, the validators. A later `storedAt` makes the file as young as one fetched now.
    /// - Throws: `localFault`.
    public func describe(
        record: CacheRecord, validators: HTTPValidators?, forKey key: String
    ) throws(WebImageError) {
        let images = disk.images
        guard let entry = try images.find(CacheKey(key), atLeast: .none) else { return }
        if entry.record != record { try images.records.replace(record, of: entry) }
        guard let validators,
            validators != images.validators(of: entry) || record.storedAt > entry.record?.storedAt ?? 0
        else { return }
        _ = try images.renew(entry, validators: validators)
    }

    /// As ``ImageFiles/remove(_:)``.
    /// - Throws: `localFault`.
    public func remove(forKey key: String) throws(WebImageError) { try disk.images.remove(CacheKey(key)) }

    /// As in ``ImageFiles/removeAll()``.
    /// - Throws: `localFault`; `cancelled` if the task is cancelled.
    public func removeAll() throws(WebImageError) -> Int { try disk.images.removeAll() }

    /// Expires by the configured date. Images of a worker's running batch are kept.
    /// - Throws: `localFault`; `cancelled` if the task is cancelled, after some images may have been removed.
    public func removeExpired(olderThan age: Double?, beyond size: Int?) throws(WebImageError) -> SweepReport? {
        // SDDiskCache continues until it is less than half.
        try disk.sweep.run(SweepRules(maxAge: age, maxSize: size, targetSize: size.map { $0 / 2 - 1 }))
    }

    /// As in ``CacheAccount/usage()``.
    /// - Throws: `localFault`.
    public func diskUsage() throws(WebImageError) -> (count: Int, size: Int) { try disk.account.usage() }

    /// As in ``ImageFiles/path(of:)``.
    public func path(forKey key: String) -> String? { disk.images.path(of: CacheKey(key)) }
}

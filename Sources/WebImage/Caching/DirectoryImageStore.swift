/// A cache directory as a store: for one that keeps its images in it and does something of its own before or after. ``ImageCache`` itself
/// finds and stores in its directory without this, and so without reading what nobody wants to see.
public struct DirectoryImageStore: DiskImageStore {
    let disk: DiskCache

    /// The images of a cache directory.
    public init(_ disk: DiskCache) { self.disk = disk }

    /// As ``DiskCache/existingPath(forKey:)`` finds it.
    public func contains(_ key: String) -> Bool { disk.existingPath(forKey: key) != nil }

    /// Reads an image, whatever level it passed; one from a read-only directory too.
    /// - Throws: `localFault`.
    public func image(forKey key: String) throws(WebImageError) -> StoredImage? {
        guard let entry = try disk.find(forKey: key, atLeast: .none) else { return nil }
        return StoredImage(
            body: ImageBody(try entry.bytes()), record: entry.record, validators: disk.images.validators(of: entry))
    }

    /// Stores an image, in place of the one under its key. Without a record it is one of which nothing is known.
    /// - Throws: `localFault`.
    public func store(_ image: StoredImage, forKey key: String) throws(WebImageError) {
        let unknown = CacheRecord(
            level: .none, format: .unknown, length: image.body.count, digest: nil, storedAt: WallClock.seconds)
        try disk.images.store(
            image.body, for: CacheKey(key), record: image.record ?? unknown, validators: image.validators,
            replacing: true, keepsValidators: image.validators != nil)
    }

    /// Writes a record and validators anew, where there are any. A later `storedAt` makes the file as young as one that was fetched now.
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

    /// As ``ImageFiles/removeAll()``.
    /// - Throws: `localFault`; `cancelled` where the task is.
    public func removeAll() throws(WebImageError) -> Int { try disk.images.removeAll() }

    /// By the date that the configuration names. What a running batch of a worker has fetched stays.
    /// - Throws: `localFault`; `cancelled` where the task is, what was removed until then is gone.
    public func removeExpired(olderThan age: Double?, beyond size: Int?) throws(WebImageError) -> SweepReport? {
        // SDDiskCache goes on until it is less than half.
        try disk.sweep.run(SweepRules(maxAge: age, maxSize: size, targetSize: size.map { $0 / 2 - 1 }))
    }

    /// As ``CacheAccount/usage()``.
    /// - Throws: `localFault`.
    public func diskUsage() throws(WebImageError) -> (count: Int, size: Int) { try disk.account.usage() }

    /// As ``ImageFiles/path(of:)``.
    public func path(forKey key: String) -> String? { disk.images.path(of: CacheKey(key)) }
}

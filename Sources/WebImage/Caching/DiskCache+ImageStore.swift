/// A directory is a store too: for one that keeps its images in it and does something of its own before or after. ``ImageCache`` itself uses
/// its directory without this, and so without reading what nobody wants to see.
extension DiskCache: DiskImageStore {
    /// As ``containsData(forKey:)``.
    public func contains(_ key: String) -> Bool { containsData(forKey: key) }

    /// Reads an image, whatever level it passed; one from a read-only directory too.
    /// - Throws: `localFault`.
    public func image(forKey key: String) throws(WebImageError) -> StoredImage? {
        guard let entry = try lookup(forKey: key, atLeast: .none) else { return nil }
        return StoredImage(
            body: ImageBody(try entry.bytes()), record: entry.record, validators: validators(of: entry))
    }

    /// Stores an image, in place of the one under its key. Without a record it is one of which nothing is known.
    /// - Throws: `localFault`.
    public func store(_ image: StoredImage, forKey key: String) throws(WebImageError) {
        let unknown = CacheRecord(
            level: .none, format: .unknown, length: image.body.count, digest: nil, storedAt: WallClock.seconds)
        try storeBesideClearing(
            image.body, for: CacheKey(key), record: image.record ?? unknown, validators: image.validators,
            replacing: true, keepsValidators: image.validators != nil)
    }

    /// Writes a record and validators anew, where there are any. A later `storedAt` makes the file as young as one that was fetched now.
    /// - Throws: `localFault`.
    public func describe(
        record: CacheRecord, validators: HTTPValidators?, forKey key: String
    ) throws(WebImageError) {
        guard let entry = try lookup(CacheKey(key), atLeast: .none) else { return }
        if entry.record != record { _ = try rewrite(record, of: entry) }
        guard let current = try lookup(CacheKey(key), atLeast: .none) else { return }
        if let validators, validators != self.validators(of: current) || record.storedAt > entry.record?.storedAt ?? 0 {
            try renew(current, validators: validators)
        }
    }

    /// As ``removeData(forKey:)``.
    /// - Throws: `localFault`.
    public func remove(forKey key: String) throws(WebImageError) { try removeData(forKey: key) }

    /// As ``clear()``.
    /// - Throws: `localFault`; `cancelled` where the task is.
    public func removeAll() throws(WebImageError) -> Int { try clear() }

    /// By the date that the configuration names. What a running batch of a worker has fetched stays.
    /// - Throws: `localFault`; `cancelled` where the task is, what was removed until then is gone.
    public func removeExpired(olderThan age: Double?, beyond size: Int?) throws(WebImageError) -> SweepReport? {
        // SDDiskCache goes on until it is less than half.
        try sweep(SweepRules(maxAge: age, maxSize: size, targetSize: size.map { $0 / 2 - 1 }))
    }

    /// As ``cachePath(forKey:)``.
    public func path(forKey key: String) -> String? { cachePath(forKey: key) }
}

internal import Threading

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

    /// Removes every image from the disk (`clearDiskOnCompletion:`); memory stays. See ``DiskCache/clear()``, or what the store does.
    /// - Returns: how many.
    /// - Throws: `localFault`; `cancelled` where the task is.
    @discardableResult
    public func clearDisk() async throws(WebImageError) -> Int {
        try await pool.run { [self] () throws(WebImageError) in try store.removeAll() }
    }
}

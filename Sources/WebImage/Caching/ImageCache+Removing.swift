internal import Threading

extension ImageCache {
    /// Removes an image from memory and, by default, from the disk (`removeImageForKey:fromDisk:withCompletion:`).
    /// - Throws: `localFault` where it cannot be removed from the disk.
    public func removeImage(forKey key: String, fromDisk: Bool = true) async throws(WebImageError) {
        memory?.remove(forKey: key)
        guard fromDisk else { return }
        // Again afterwards: a query may have found the file before it went, and put it into memory.
        defer { memory?.remove(forKey: key) }
        try await pool.run { [self] () throws(WebImageError) in _ = try disk.removeData(forKey: key) }
    }

    /// Removes every image from memory.
    public func clearMemory() { memory?.removeAll() }

    /// Removes every image from the disk (`clearDiskOnCompletion:`); memory stays. See ``DiskCache/clear()``.
    /// - Returns: how many.
    /// - Throws: `localFault`; `cancelled` where the task is.
    @discardableResult
    public func clearDisk() async throws(WebImageError) -> Int {
        try await pool.run { [self] () throws(WebImageError) in try disk.clear() }
    }
}

internal import Threading

/// Proves images that have no record which is believed, or one of a lower level. All methods block.
package struct ImageProof: Sendable {
    private let disk: DiskCache
    private let level: ValidationLevel
    private let unverifiable: UnverifiableFormats
    private let coder: ImageCoder

    /// * `level`: as what an image is verified.
    package init(
        _ disk: DiskCache, level: ValidationLevel, unverifiable: UnverifiableFormats, coder: ImageCoder = ImageCoder()
    ) {
        (self.disk, self.level, self.unverifiable, self.coder) = (disk, level, unverifiable, coder)
    }

    /// Verifies a found image. One that passes is recorded where that may be written, so that it is verified once; a damaged one is moved
    /// aside. An image with the record of the file that it is a copy of must have that one's digest.
    /// - Returns: what the check found out, and the bytes; nil if it may not be used.
    /// - Throws: `localFault` if the file cannot be read or recorded; `cancelled`.
    func verify(_ entry: CacheEntry) throws(WebImageError) -> (info: ImageInfo, bytes: [UInt8])? {
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
            if error.code == .localFault || error.code == .cancelled { throw error }
            if error.code == .badImageData { disk.images.moveAside(entry) }
            return nil
        }
        if entry.record == nil, let claimed = entry.claim?.digest, SHA256.hash(bytes) != claimed {
            disk.images.moveAside(entry)
            return nil
        }
        // A kept image that cannot be verified stays at its level.
        if entry.record.map({ $0.level < info.level }) ?? true { _ = try disk.images.raise(entry, to: info) }
        return (info, bytes)
    }

    /// Finds an image that is handed out: one without a record that is believed is verified first.
    /// - Returns: nil if there is none that may be used.
    /// - Throws: as ``DiskCache/find(forKey:atLeast:)``.
    package func find(_ key: String) throws(WebImageError) -> CacheEntry? {
        guard let entry = try disk.find(forKey: key, atLeast: .none) else { return nil }
        guard entry.standing == .unverified else { return entry }
        guard try verify(entry) != nil else { return nil }
        // With the record that it has now.
        return try disk.find(forKey: key, atLeast: .none) ?? entry
    }
}

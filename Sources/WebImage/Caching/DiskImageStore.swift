/// Replaces the directory of a cache (SDImageCacheConfig's `diskCacheClass`, SDDiskCache), by a database or a ``DirectoryImageStore``
/// wrapper.
///
/// It receives verified images. What it returns is trusted only as far as its bytes prove it: they must match the digest in the record
/// returned with them, or are verified again; damaged images are removed and are a miss.
///
/// Called concurrently on threads that may block, and never under a lock of the cache. For its own failures it throws `localFault`, which
/// is never blamed on a URL.
public protocol DiskImageStore: Sendable {
    /// Whether there is an image for a key. Does not count as an access.
    func contains(_ key: String) -> Bool

    /// The image for a key (`dataForKey:`, `extendedDataForKey:`).
    /// - Returns: nil if there is none.
    /// - Throws: `localFault`.
    func image(forKey key: String) throws(WebImageError) -> StoredImage?

    /// Stores an image, replacing that of the key (`setData:forKey:`, `setExtendedData:forKey:`). Atomic for readers, with its record.
    /// - Throws: `localFault`; then nothing has changed.
    func store(_ image: StoredImage, forKey key: String) throws(WebImageError)

    /// Replaces record and validators of an image, but not its bytes (`setExtendedData:forKey:`). Must not recreate a removed image.
    /// - Throws: `localFault`.
    func describe(record: CacheRecord, validators: HTTPValidators?, forKey key: String) throws(WebImageError)

    /// Removes an image if present.
    /// - Throws: `localFault`.
    func remove(forKey key: String) throws(WebImageError)

    /// Removes all images.
    /// - Returns: their number.
    /// - Throws: `localFault`.
    func removeAll() throws(WebImageError) -> Int

    /// Removes old images (`removeExpiredData`).
    /// - Parameters:
    ///   - age: seconds; images of this age or older are removed. 0: all; nil: no limit.
    ///   - size: bytes that all images may take; if the rest takes more, the oldest are removed until it takes less than half of that. Nil:
    ///     no limit.
    /// - Returns: what was removed and what is left; nil if another process is doing the same, and nothing was done.
    /// - Throws: `localFault`; `cancelled` if the task is cancelled.
    func removeExpired(olderThan age: Double?, beyond size: Int?) throws(WebImageError) -> SweepReport?

    /// Number of images, and the bytes they take in the store.
    /// - Throws: `localFault`.
    func diskUsage() throws(WebImageError) -> (count: Int, size: Int)

    /// Path of a key's file, even if it does not exist; nil if the store has no files.
    func path(forKey key: String) -> String?
}

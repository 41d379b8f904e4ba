/// Where an image cache keeps images beyond its memory, in place of its directory (SDImageCacheConfig's `diskCacheClass`, SDDiskCache): a
/// database, a store over a network, a ``DirectoryImageStore`` with something before it.
///
/// It gets images that have been verified. What it gives back counts only as far as its bytes prove it: they have to be those of the record
/// that came with them, or are verified anew; what is damaged is removed and is a miss.
///
/// Called on threads that may block, by several at once, and never under a lock of the cache. What it throws where it is at fault itself is
/// `localFault`: that is nobody's URL.
public protocol DiskImageStore: Sendable {
    /// Whether there is an image under a key. To ask is no use of it.
    func contains(_ key: String) -> Bool

    /// The image of a key (`dataForKey:`, `extendedDataForKey:`).
    /// - Returns: nil where there is none.
    /// - Throws: `localFault`.
    func image(forKey key: String) throws(WebImageError) -> StoredImage?

    /// Puts an image in, in place of the one under its key (`setData:forKey:`, `setExtendedData:forKey:`). Others see the old one or the new
    /// one, whole and with its record.
    /// - Throws: `localFault`; then nothing has changed.
    func store(_ image: StoredImage, forKey key: String) throws(WebImageError)

    /// Puts another record and other validators in the place of those of an image, whose bytes stay (`setExtendedData:forKey:`). One that is
    /// not there any more stays away.
    /// - Throws: `localFault`.
    func describe(record: CacheRecord, validators: HTTPValidators?, forKey key: String) throws(WebImageError)

    /// Takes an image out, where there is one.
    /// - Throws: `localFault`.
    func remove(forKey key: String) throws(WebImageError)

    /// Takes all images out.
    /// - Returns: how many.
    /// - Throws: `localFault`.
    func removeAll() throws(WebImageError) -> Int

    /// Takes old images out (`removeExpiredData`).
    /// - Parameters:
    ///   - age: seconds; what is as old or older goes. 0: everything; nil: nothing for its age.
    ///   - size: bytes that all images may take; where the rest takes more, the oldest go until it takes less than half of that. Nil: any
    ///     number.
    /// - Returns: what went and what is left; nil where somebody else is just doing the same, nothing was done then.
    /// - Throws: `localFault`; `cancelled` where the task is.
    func removeExpired(olderThan age: Double?, beyond size: Int?) throws(WebImageError) -> SweepReport?

    /// How many images there are, and the bytes they take where they are kept.
    /// - Throws: `localFault`.
    func diskUsage() throws(WebImageError) -> (count: Int, size: Int)

    /// Where the file of a key is, or would be; nil where there are no files.
    func path(forKey key: String) -> String?
}

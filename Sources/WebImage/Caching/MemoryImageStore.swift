/// A store that replaces the list of a memory cache (SDImageCacheConfig's `memoryCacheClass`), with its own policy and limits.
///
/// Called concurrently from any thread, and never under a lock of the cache.
public protocol MemoryImageStore: Sendable {
    /// Number of images.
    var count: Int { get }
    /// Bytes of all images.
    var totalCost: Int { get }
    /// The image of a key; nil if there is none.
    func image(forKey key: String) -> MemoryImage?
    /// Adds an image, replacing that of the key, or declines it.
    func insert(_ image: MemoryImage, forKey key: String)
    /// Removes an image.
    func remove(forKey key: String)
    /// Removes all images.
    func removeAll()
}

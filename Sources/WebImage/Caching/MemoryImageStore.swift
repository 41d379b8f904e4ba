/// Where a memory cache keeps its images, in place of its own list (SDImageCacheConfig's `memoryCacheClass`): what it keeps, for how long and
/// within which limits is its own affair.
///
/// Called from any thread, by several at once, and never under a lock of the cache.
public protocol MemoryImageStore: Sendable {
    /// How many images there are.
    var count: Int { get }
    /// Bytes of all images together.
    var totalCost: Int { get }
    /// The image of a key; nil where there is none, or none any more.
    func image(forKey key: String) -> MemoryImage?
    /// Puts an image in, in place of the one under its key, or leaves it.
    func insert(_ image: MemoryImage, forKey key: String)
    /// Takes an image out.
    func remove(forKey key: String)
    /// Takes all out.
    func removeAll()
}

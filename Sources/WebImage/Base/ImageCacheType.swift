/// Source of a loaded image (SDImageCacheType).
public enum ImageCacheType: String, Sendable {
    /// From the network.
    case none
    /// From a file, or the store in its place.
    case disk
    /// From memory.
    case memory
}

/// Source of a loaded image (SDImageCacheType).
public enum ImageCacheType: String, Sendable {
    /// From the network.
    case none
    case disk
    case memory
}

/// Where a loaded image came from (SDImageCacheType).
public enum ImageCacheType: String, Sendable {
    /// From the network.
    case none
    case disk
    case memory
}

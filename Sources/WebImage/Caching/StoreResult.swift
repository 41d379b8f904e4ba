/// Result of storing an image.
public enum StoreResult: Sendable, Equatable {
    /// The file was published under its final name.
    case stored
    /// Another writer was first; its file is complete and sufficiently verified, with this record.
    case alreadyPresent(CacheRecord)
}

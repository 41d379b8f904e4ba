/// What became of a stored image.
public enum StoreResult: Sendable, Equatable {
    /// The file is there under its final name.
    case stored
    /// Another writer was first; its file is whole and good enough, and this is its record.
    case alreadyPresent(CacheRecord)
}

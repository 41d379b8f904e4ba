/// A verified image on disk, as a look at it left it.
struct FoundImage {
    /// The open file.
    let entry: CacheEntry
    /// What its record or its check says.
    let info: ImageInfo
    /// Its bytes, where they were read to check it.
    let bytes: [UInt8]?
}

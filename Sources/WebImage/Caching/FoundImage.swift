/// An image of the cache that may be used: its record or a check says so.
struct FoundImage {
    let entry: CacheEntry
    /// From its record or its check.
    let info: ImageInfo
    /// The bytes, if they were read for the check.
    let bytes: [UInt8]?
    /// Those of the memory cache before the image was found, for an offer to it.
    let removals: Int?

    /// All bytes; fewer than the entry's size if the file was just truncated.
    func read() throws(WebImageError) -> [UInt8] { if let bytes { bytes } else { try entry.bytes() } }
}

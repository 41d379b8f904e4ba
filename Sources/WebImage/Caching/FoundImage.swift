/// A verified image beyond the memory, as a look at it left it.
struct FoundImage {
    /// Where it is.
    enum Place {
        /// In the cache's directory: an open file.
        case file(CacheEntry)
        /// In a store of somebody else's.
        case stored(StoredImage, path: String?)
    }

    let place: Place
    /// What its record or its check says.
    let info: ImageInfo
    /// Its bytes, where they were read to check it.
    let bytes: [UInt8]?

    /// Its record, as it was before this look at it.
    var record: CacheRecord? {
        switch place {
        case .file(let entry): entry.record
        case .stored(let image, _): image.record
        }
    }

    /// Length in bytes.
    var size: Int {
        switch place {
        case .file(let entry): entry.size
        case .stored(let image, _): image.body.count
        }
    }

    /// Its file; nil where it has none.
    var path: String? {
        switch place {
        case .file(let entry): entry.path
        case .stored(_, let path): path
        }
    }

    /// When its bytes came, or were last said to be what the server has, in seconds since 1970.
    var renewedAt: Int {
        switch place {
        case .file(let entry): entry.modifiedAt
        case .stored(let image, _): image.record?.storedAt ?? 0
        }
    }

    /// All bytes. Fewer than ``size`` where somebody has just cut the file short.
    func read() throws(WebImageError) -> [UInt8] {
        if let bytes { return bytes }
        switch place {
        case .file(let entry): return try entry.bytes()
        case .stored(let image, _):
            return try image.body.withUnsafeBytes { bytes throws(WebImageError) in Array(bytes) }
        }
    }

    /// The digest of the bytes.
    func digest() throws(WebImageError) -> Digest {
        switch place {
        case .file(let entry): return try entry.digest()
        case .stored(let image, _):
            return try image.body.withUnsafeBytes { bytes throws(WebImageError) in SHA256.hash(bytes) }
        }
    }
}

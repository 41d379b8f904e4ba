struct FoundImage {
    enum Place {
        case file(CacheEntry)
        case stored(StoredImage, path: String?)
    }

    let place: Place
    /// From its record or its check.
    let info: ImageInfo
    /// The bytes, if they were read for the check.
    let bytes: [UInt8]?

    var record: CacheRecord? {
        switch place {
        case .file(let entry): entry.record
        case .stored(let image, _): image.record
        }
    }

    var size: Int {
        switch place {
        case .file(let entry): entry.size
        case .stored(let image, _): image.body.count
        }
    }

    var path: String? {
        switch place {
        case .file(let entry): entry.path
        case .stored(_, let path): path
        }
    }

    /// When the bytes were fetched or last revalidated, in seconds since 1970.
    var renewedAt: Int {
        switch place {
        case .file(let entry): entry.modifiedAt
        case .stored(let image, _): image.record?.storedAt ?? 0
        }
    }

    /// All bytes; fewer than ``size`` if the file was just truncated.
    func read() throws(WebImageError) -> [UInt8] {
        if let bytes { return bytes }
        switch place {
        case .file(let entry): return try entry.bytes()
        case .stored(let image, _):
            return try image.body.withUnsafeBytes { bytes throws(WebImageError) in Array(bytes) }
        }
    }

    func digest() throws(WebImageError) -> Digest {
        switch place {
        case .file(let entry): return try entry.digest()
        case .stored(let image, _):
            return try image.body.withUnsafeBytes { bytes throws(WebImageError) in SHA256.hash(bytes) }
        }
    }
}

internal import WebImage

/// How much of the cache something is.
struct CacheUsage {
    private(set) var count = 0
    private(set) var bytes = 0
    private(set) var allocated = 0

    /// For JSON.
    var members: [(String, JSONText)] {
        [("count", .int(count)), ("bytes", .int(bytes)), ("allocated_bytes", .int(allocated))]
    }

    /// `3 images, 150 kB, 160 kB on disk`
    var text: String {
        "\(Wording.count(count)) image\(count == 1 ? "" : "s"), \(Wording.bytes(bytes)), \(Wording.bytes(allocated)) on disk"
    }

    /// Adds an image.
    mutating func add(_ entry: CacheEntry) {
        count += 1
        bytes = Plausible.sum(bytes, entry.size)
        allocated += entry.allocatedSize
    }
}

package struct SweepRules: Sendable {
    /// Why an image is removed.
    package enum Reason: String, Sendable {
        case age = "max-age"
        case size = "max-size"
        case unlisted = "not-in"
    }

    /// Seconds; images of this age or older are removed. 0: all; nil: no limit.
    package var maxAge: Double?
    /// Maximum disk usage in bytes; above it the oldest are removed. Nil: no limit.
    package var maxSize: Int?
    /// Disk usage to reach then; nil: `maxSize`.
    package var targetSize: Int?
    /// Images that are not among these are removed; nil: no such rule.
    package var listed: ImageNames?
    /// Files removed per second while the cache is in use; 0: no limit. Thousands of deletions make new files on ext4 several times dearer
    /// for minutes.
    package var rate = 2_000
    /// Whether to remove temporary files left by a crash, and quarantined files older than `maxAge`.
    package var removesLeftovers = false
    package var isDryRun = false

    package init() {}

    package init(maxAge: Double? = nil, maxSize: Int? = nil, targetSize: Int? = nil) {
        self.maxAge = maxAge
        self.maxSize = maxSize
        self.targetSize = targetSize
    }
}

/// Result of a sweep.
public struct SweepReport: Sendable, Equatable {
    /// Number and size of images.
    public struct Sum: Sendable, Equatable {
        /// Number of images.
        public var count = 0
        /// Their disk usage, in blocks of 4 KiB.
        public var size = 0

        /// Creates a sum; zero by default.
        public init(count: Int = 0, size: Int = 0) {
            self.count = count
            self.size = size
        }

        mutating func add(size: Int) {
            count += 1
            self.size += size
        }
    }

    /// Removed because of their age.
    public var expired = Sum()
    /// Removed because of the total size, oldest first.
    public var evicted = Sum()
    /// Removed because they are not among those that stay.
    public var unlisted = Sum()
    /// Kept although due: fetched by a running batch, or just changed or being transferred.
    public var spared = Sum()
    /// Images left.
    public var remaining = Sum()
    /// Removed temporary files left by a crash.
    public var temporaryFiles = 0
    /// Files removed from `bad/`.
    public var movedAside = 0

    /// All zero.
    public init() {}
}

package struct SweptImage: Sendable {
    package var path: String
    package var size: Int
    /// The relevant date in seconds since 1970.
    package var date: Int
    package var reason: SweepRules.Reason
}

/// Images, by the first 64 bits of their keys' digests: ten million take 80 MB. Of two with the same bits one stands for both.
package struct ImageNames: Sendable {
    private var names: [UInt64] = []

    package init(_ keys: some Sequence<CacheKey>) {
        names = keys.map(\.prefix)
        names.sort()
    }

    package func contains(_ key: CacheKey) -> Bool { contains(key.prefix) }

    func contains(_ name: UInt64) -> Bool {
        var (low, high) = (0, names.count)
        while low < high {
            let middle = (low + high) / 2
            if names[middle] < name { low = middle + 1 } else { high = middle }
        }
        return low < names.count && names[low] == name
    }
}

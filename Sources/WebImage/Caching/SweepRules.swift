/// What a sweep of a disk cache removes.
package struct SweepRules: Sendable {
    /// Seconds; what is as old or older goes. 0: everything; nil: nothing for its age.
    package var maxAge: Double?
    /// Bytes that images may take of the disk; where it is more, the oldest go. Nil: any number.
    package var maxSize: Int?
    /// Bytes that are left after that at most, `maxSize` where it is nil.
    package var targetSize: Int?
    /// Files removed a second while anybody fetches into the cache; 0: no limit. Thousands of deletions at a time make every new file on
    /// ext4 cost several times as much for minutes.
    package var rate = 2_000
    /// Whether temporary files that a crash left go too, and what was moved aside and is older than `maxAge`.
    package var removesLitter = false
    /// Only says what would go.
    package var isDryRun = false

    /// No rule at all.
    package init() {}

    /// By age, by size, or both.
    package init(maxAge: Double? = nil, maxSize: Int? = nil, targetSize: Int? = nil) {
        self.maxAge = maxAge
        self.maxSize = maxSize
        self.targetSize = targetSize
    }
}

/// What a sweep did.
public struct SweepReport: Sendable, Equatable {
    /// Some images.
    public struct Sum: Sendable, Equatable {
        /// How many.
        public var count = 0
        /// What they take of the disk, in blocks of 4 KiB.
        public var size = 0

        /// So many of so many bytes; none by default.
        public init(count: Int = 0, size: Int = 0) {
            self.count = count
            self.size = size
        }

        mutating func add(size: Int) {
            count += 1
            self.size += size
        }
    }

    /// Went because they were too old.
    public var expired = Sum()
    /// Went because all together took too much, the oldest first.
    public var evicted = Sum()
    /// Would have gone, and stayed: a running batch fetched them, or somebody changed or transferred them at that moment.
    public var spared = Sum()
    /// Are left.
    public var remaining = Sum()
    /// Temporary files that a crash had left.
    public var temporaryFiles = 0
    /// Files out of `bad/`.
    public var movedAside = 0

    /// Nothing went, and nothing was there.
    public init() {}
}

/// An image that a sweep removes.
package struct SweptImage: Sendable {
    /// Its path.
    package var path: String
    /// What it takes of the disk.
    package var size: Int
    /// Seconds since 1970, of the date that counts.
    package var date: Int
    /// Whether it goes for its age, or for the size of all.
    package var isExpired: Bool
}

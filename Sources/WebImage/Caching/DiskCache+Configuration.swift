extension DiskCache {
    /// Settings of a cache directory.
    public struct Configuration: Sendable {
        /// Whether to use a feature of the file system.
        public enum Use: Sendable {
            /// If the file system supports it.
            case auto
            /// Never.
            case never
        }

        /// What a power cut may lose; default `batch`.
        public var durability: Durability
        /// Unnamed temporary files (O_TMPFILE); default `auto`. Otherwise files named `.t-…` are used.
        public var usesUnnamedFiles: Use
        /// Extended attributes; default `auto`. Otherwise a second file with the suffix `.m` is used.
        public var usesExtendedAttributes: Use
        /// Which date determines the age of a file; default `modificationDate`. With `accessDate` lookups update that date.
        public var expireType: ExpireType
        /// Whether the cache is read-only: nothing is created, stored, raised or moved; default false.
        public var isReadOnly: Bool
        /// Directories consulted, in this order, if this one has no image (`addReadOnlyCachePath:`): caches of ours or of SDWebImage. They
        /// are never changed; images of SDWebImage, which have no record, are verified each time.
        public var readOnlyDirectories: [String] = []
        /// Maximum bytes of a file without a record that is read for verification; a longer one counts as damaged. Default 1 GiB. Files with a
        /// record have at most 4 GiB.
        public var maxUnverifiedSize = 1 << 30
        var isTier = false

        /// Creates settings.
        public init(
            durability: Durability = .batch, usesUnnamedFiles: Use = .auto, usesExtendedAttributes: Use = .auto,
            isReadOnly: Bool = false, expireType: ExpireType = .modificationDate
        ) {
            self.durability = durability
            self.usesUnnamedFiles = usesUnnamedFiles
            self.usesExtendedAttributes = usesExtendedAttributes
            self.isReadOnly = isReadOnly
            self.expireType = expireType
        }
    }
}

extension DiskCache {
    /// Which date determines the age of a file (SDImageCacheConfigExpireType).
    public enum ExpireType: String, Sendable, CaseIterable {
        /// Last lookup, to the hour.
        case accessDate
        /// Last write of the bytes.
        case modificationDate
        /// Creation; the modification date if the file system does not keep it.
        case creationDate
        /// Last change of anything: record, names, dates.
        case changeDate
    }
}

extension DiskCache {
    /// How a cache directory is used.
    public struct Configuration: Sendable {
        /// What a power cut may take.
        public enum Durability: String, Sendable, CaseIterable {
            /// Whatever the kernel has not written out yet.
            case none
            /// Nothing that was stored before the last ``DiskCache/sync()``.
            case batch
            /// Nothing that was stored: every file and its directory are written out before it counts.
            case file
        }

        /// Whether a means of the file system is used.
        public enum Use: Sendable {
            /// Where the file system has it.
            case auto
            /// Not at all.
            case never
        }

        /// What a power cut may take; default `batch`.
        public var durability: Durability
        /// Unnamed temporary files (O_TMPFILE); default where the file system has them. Otherwise files named `.t-…`.
        public var usesUnnamedFiles: Use
        /// Extended attributes; default where the file system has them. Otherwise a second file with the ending `.m`.
        public var usesExtendedAttributes: Use
        /// Whether ETag, Last-Modified and key are kept beside each file; default false.
        public var keepsHTTPValidators: Bool
        /// Which date of a file says how old it is; default `modificationDate`. With `accessDate` a lookup sets that date.
        public var expireType: ExpireType
        /// Whether the directory is only looked up: nothing is made, stored, raised or moved; default false.
        public var isReadOnly: Bool
        /// Whether a directory that everybody may write to is refused; default false: it has a warning.
        public var isStrict = false
        /// Directories that are looked up where this one has no image, in this order (`addReadOnlyCachePath:`): caches of ours or of
        /// SDWebImage. Nothing in them is changed; images of SDWebImage's, which have no record, are verified each time.
        public var readOnlyDirectories: [String] = []
        /// The longest file in bytes that can be an image although it has no record, and is read to find that out; a longer one is damaged.
        /// Default 1 GiB; a worker has its `--max-size`. Files with a record have at most 4 GiB.
        public var maxUnprovedSize = 1 << 30
        /// Whether it is such a directory of another cache.
        var isTier = false

        /// A configuration of its parts.
        public init(
            durability: Durability = .batch, usesUnnamedFiles: Use = .auto, usesExtendedAttributes: Use = .auto,
            keepsHTTPValidators: Bool = false, isReadOnly: Bool = false, expireType: ExpireType = .modificationDate
        ) {
            self.durability = durability
            self.usesUnnamedFiles = usesUnnamedFiles
            self.usesExtendedAttributes = usesExtendedAttributes
            self.keepsHTTPValidators = keepsHTTPValidators
            self.isReadOnly = isReadOnly
            self.expireType = expireType
        }
    }
}

extension DiskCache {
    /// Which date of a file says how old it is (SDImageCacheConfigExpireType).
    public enum ExpireType: String, Sendable, CaseIterable {
        /// When it was last looked up, to the hour.
        case accessDate
        /// When its bytes were written.
        case modificationDate
        /// When the file was made; the modification date where the file system does not keep that.
        case creationDate
        /// When anything about it changed: its record, its names, its dates.
        case changeDate
    }
}

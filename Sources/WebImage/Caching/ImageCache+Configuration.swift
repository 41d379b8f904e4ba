extension ImageCache {
    /// How a cache works (SDImageCacheConfig).
    public struct Configuration: Sendable {
        /// Whether images that are stored, found on disk or downloaded are kept in memory too; true by default.
        public var shouldCacheImagesInMemory = true
        /// Bytes of all images in memory, encoded as they came; 0: no limit. 64 MiB by default: 1,300 pictures of 50 KB, or the largest
        /// one that a downloader takes. SDWebImage has no limit and relies on the system's memory warnings, which Linux has not.
        public var maxMemoryCost = 64 << 20
        /// How many images in memory; 0 (default): no limit.
        public var maxMemoryCountLimit = 0
        /// What keeps the images in memory in place of the cache's own list, and without the two limits above (`memoryCacheClass`); nil by
        /// default.
        public var memoryStore: (any MemoryImageStore)?
        /// Seconds after which an image is old, for ``ImageCache/deleteOldFiles()``: a week by default; below 0 none ever is, 0 every one.
        public var maxDiskAge: Double = 7 * 86_400
        /// Bytes that images may take of the disk, for ``ImageCache/deleteOldFiles()``; 0 (default): no limit.
        public var maxDiskSize = 0
        /// Which date of a file says how old it is; the modification date by default.
        public var diskCacheExpireType: DiskCache.ExpireType {
            get { disk.expireType }
            set { disk.expireType = newValue }
        }
        /// How the directory is used.
        public var disk = DiskCache.Configuration()
        /// How far an image must have been verified to be stored or found by the cache's own calls; `decode` by default. A manager
        /// asks for the level of its configuration instead.
        public var validation = ValidationLevel.decode
        /// The longest wait for another process that transfers the same image: it may hang.
        package var transferPatience = Duration.seconds(15)
        /// What verifies.
        public var coder = ImageCoder()

        /// The defaults.
        public init() {}

        /// The defaults without a memory cache: for whoever only fills the disk.
        public static var diskOnly: Configuration {
            var configuration = Configuration()
            configuration.shouldCacheImagesInMemory = false
            return configuration
        }
    }
}

extension ImageCache {
    /// Settings of a cache (SDImageCacheConfig).
    public struct Configuration: Sendable {
        /// Whether images that are stored, found on disk or downloaded are also kept in memory; default true.
        public var shouldCacheImagesInMemory = true
        /// Maximum bytes of all images in memory, encoded; 0: no limit. Default 64 MiB: 1,300 images of 50 KB, or the largest that a
        /// downloader accepts. SDWebImage has no limit and relies on the system's memory warnings, which Linux lacks.
        public var maxMemoryCost = 64 << 20
        /// Maximum number of images in memory; 0 (default): no limit.
        public var maxMemoryCountLimit = 0
        /// Maximum age in seconds for ``ImageCache/deleteOldFiles()``; default a week; negative: no limit; 0: every image.
        public var maxDiskAge: Double = 7 * 86_400
        /// Maximum disk usage in bytes for ``ImageCache/deleteOldFiles()``; 0 (default): no limit.
        public var maxDiskSize = 0
        /// Which date determines the age of a file; default the modification date.
        public var diskCacheExpireType: DiskCache.ExpireType {
            get { disk.expireType }
            set { disk.expireType = newValue }
        }
        /// Settings of the directory.
        public var disk = DiskCache.Configuration()
        /// The level to which the cache's own calls verify images; default `decode`. A manager uses the level of its configuration.
        public var validation = ValidationLevel.decode
        /// Maximum wait for another process that transfers the same image: it may hang.
        package var transferTimeout = Duration.seconds(15)
        /// Verifies images.
        public var coder = ImageCoder()

        /// Default settings.
        public init() {}

        /// Default settings without a memory cache, for programs that only fill the disk.
        public static var diskOnly: Configuration {
            var configuration = Configuration()
            configuration.shouldCacheImagesInMemory = false
            return configuration
        }
    }
}

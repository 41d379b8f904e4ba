internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// What the cache may hold, nothing is ever removed from it without one of these; and how its files are made.
struct CacheLimitOptions: ParsableArguments {
    @Option(name: .customLong("cache-max-age"), help: "Remove images that are older, as 7d; none by default.")
    var maxAge: TimeSpan?

    @Option(
        name: .customLong("cache-max-size"),
        help: "What the images may take of the disk, as 10GiB: the oldest go; no limit by default.")
    var maxSize: ByteSize?

    @Option(
        name: .customLong("cache-expire-by"),
        help: "The date that says how old an image is: modified, accessed, created, changed.")
    var expireBy = ExpiryDate.modified

    @Option(name: .customLong("min-free"), help: "Pause where the disk has less room, as 1GiB; none by default.")
    var minFree: ByteSize?

    @OptionGroup(title: "Cache files") var storage: StorageOptions
    @OptionGroup(title: "Cache files") var readOnly: ReadOnlyCacheOptions

    func apply(to settings: inout FetchSettings) {
        settings.cacheMaxAge = maxAge?.seconds
        settings.cacheMaxSize = maxSize?.bytes
        settings.minFree = minFree?.bytes
        settings.cacheExpireBy = expireBy.rawValue
        settings.cacheMode = storage.mode?.bits
        settings.strictCache = storage.isStrict
        settings.plainFiles = storage.plainFiles
        settings.readOnlyCaches = readOnly.directories
    }
}

/// SDImageCacheConfig's diskCacheExpireType in a word.
enum ExpiryDate: String, ExpressibleByArgument, CaseIterable {
    case modified, accessed, created, changed

    /// The same for a cache.
    var type: DiskCache.ExpireType {
        switch self {
        case .modified: .modificationDate
        case .accessed: .accessDate
        case .created: .creationDate
        case .changed: .changeDate
        }
    }
}

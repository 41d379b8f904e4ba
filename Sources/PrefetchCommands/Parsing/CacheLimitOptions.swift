internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// What the cache may hold, nothing is ever removed from it without one of these; and how its files are made.
struct CacheLimitOptions: ParsableArguments {
    @Option(name: .customLong("cache-max-age"), help: .age("Remove images older than this: 7d. (default: never)"))
    var maxAge: Age?

    @Option(
        name: .customLong("cache-max-size"),
        help: .size("Disk space for images; the oldest are removed: 10GiB. (default: no limit)"))
    var maxSize: ByteSize?

    @Option(
        name: .customLong("min-free"), help: .size("Pause while the disk has less free space: 1GiB. (default: never)"))
    var minFree: ByteSize?

    func apply(to settings: inout FetchSettings) {
        settings.cacheMaxAge = maxAge?.seconds
        settings.cacheMaxSize = maxSize?.bytes
        settings.minFree = minFree?.bytes
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

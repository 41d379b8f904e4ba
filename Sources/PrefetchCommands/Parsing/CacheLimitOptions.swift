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

    /// How the cache is to be opened; see ``StorageOptions/prepare()``.
    func prepare() -> DiskCache.Configuration {
        var configuration = storage.prepare()
        configuration.expireType = expireBy.type
        configuration.readOnlyDirectories = readOnly.directories
        return configuration
    }

    /// The same for a worker.
    var limits: CacheLimits {
        CacheLimits(maxAge: maxAge?.seconds, maxSize: maxSize?.bytes, minFree: minFree?.bytes)
    }

    /// The same options as arguments for a worker.
    var arguments: [String] {
        var words: [String] = []
        if let maxAge { words += ["--cache-max-age", maxAge.argument] }
        if let maxSize { words += ["--cache-max-size", maxSize.argument] }
        if expireBy != .modified { words += ["--cache-expire-by", expireBy.rawValue] }
        if let minFree { words += ["--min-free", minFree.argument] }
        return words + storage.arguments + readOnly.arguments
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

internal import ArgumentParser
internal import WebImage

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

package import Queue
internal import WebImage

/// The rule of a batch that maps a URL to the key of what it stores.
package indirect enum CacheKeyRule: Sendable {
    case filter(CacheKeyFilter)
    /// The key of what is made of an image (`SDTransformedKeyForKey`).
    case transformed(CacheKeyRule, by: String)

    /// The whole URL.
    package static let url = CacheKeyRule.filter(.url)

    /// The rule of a batch: the keys of what it stores.
    package init(_ options: BatchOptions) {
        let original = Self.original(options)
        self = options.storedVariant.map { .transformed(original, by: $0.transformerKey) } ?? original
    }

    /// The keys of the images before a batch changes them.
    package static func original(_ options: BatchOptions) -> CacheKeyRule { .filter(options.cacheKey) }

    package func key(for url: String) -> String {
        switch self {
        case .filter(let filter): filter.key(for: url)
        case .transformed(let rule, let key): TransformedKey.key(rule.key(for: url), transformerKey: key)
        }
    }
}

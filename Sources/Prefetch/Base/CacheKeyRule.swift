package import Queue
internal import WebImage

/// The rule of a batch that maps a URL to the key of what it stores.
///
/// Under the URL itself is only what a request for that URL alone gave: what a line's own headers or mirrors give, and what a batch would
/// store under another absolute URL, has a key of its own (``own(_:)``). So no list decides what another list's URL gives.
package indirect enum CacheKeyRule: Sendable {
    case filter(CacheKeyFilter)
    /// The key of what is made of an image (`SDTransformedKeyForKey`).
    case transformed(CacheKeyRule, by: String)

    /// The whole URL.
    package static let url = CacheKeyRule.filter(.url)

    /// What keys begin with that stand for more than a URL.
    private static let mark = "prefetch:"

    /// The rule of a batch: the keys of what it stores.
    package init(_ options: BatchOptions) {
        let original = Self.original(options)
        self = options.storedVariant.map { .transformed(original, by: $0.transformerKey) } ?? original
    }

    /// The keys of the images before a batch changes them.
    package static func original(_ options: BatchOptions) -> CacheKeyRule { .filter(options.cacheKey) }

    /// The key of what is stored for a URL.
    /// * `settings`: of its line.
    /// - Throws: `invalidURL` where the pattern of the rule cannot be applied within its limits.
    package func key(for url: String, _ settings: URLSettings? = nil) throws(WebImageError) -> String {
        switch self {
        case .filter(let filter):
            var key = try filter.key(for: url)
            if !key.hasBytes(of: url), Self.standsForMore(key) {
                let name = filter.description
                key = Self.own("filter \(name.utf8.count)\n\(name)\n\(key)")
            }
            return settings?.source.map { Self.own("line \($0.utf8.count)\n\($0)\n\(key)") } ?? key
        case .transformed(let rule, let key):
            return TransformedKey.key(try rule.key(for: url, settings), transformerKey: key)
        }
    }

    /// The key that SDWebImage has for a URL with this filter and this transformer.
    /// - Throws: as ``key(for:_:)``.
    package func sdWebImageKey(for url: String) throws(WebImageError) -> String {
        switch self {
        case .filter(let filter): try filter.key(for: url)
        case .transformed(let rule, let key):
            TransformedKey.key(try rule.sdWebImageKey(for: url), transformerKey: key)
        }
    }

    /// Whether a key could be that of another URL, or one of ours.
    private static func standsForMore(_ key: String) -> Bool {
        ["http:", "https:", mark].contains { start in
            Substring(key.utf8.prefix(start.utf8.count)).isASCIICaseInsensitivelyEqual(to: start)
        }
    }

    private static func own(_ text: String) -> String { "\(mark)\(SHA256.hash(Array(text.utf8)).hex)" }
}

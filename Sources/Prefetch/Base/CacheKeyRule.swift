package import Queue
internal import WebImage

/// The rule of a batch that maps a URL to its cache key (SDWebImageManager's `cacheKeyFilter`).
package indirect enum CacheKeyRule: Sendable {
    /// The whole URL, byte for byte: SDWebImage's absoluteString.
    case url
    case withoutQuery
    /// `s/pattern/replacement/`: every match of a regular expression replaced.
    case substitution(pattern: String, replacement: String)
    /// The key of what is made of an image (`SDTransformedKeyForKey`).
    case transformed(CacheKeyRule, by: String)

    /// The rule of a batch: the keys of what it stores.
    package init(_ options: BatchOptions) {
        let original = Self.original(options)
        self = options.storedVariant.map { .transformed(original, by: $0.transformerKey) } ?? original
    }

    /// The keys of the images before a batch changes them.
    package static func original(_ options: BatchOptions) -> CacheKeyRule { CacheKeyRule(options.cacheKey) ?? .url }

    /// Parses `url`, `without-query` or `s/pattern/replacement/` (any character may replace the slash); nil for anything else, including an
    /// invalid regular expression.
    package init?(_ text: String) {
        switch text {
        case "url": self = .url
        case "without-query": self = .withoutQuery
        default:
            guard text.first == "s", let separator = text.dropFirst().first else { return nil }
            let parts = text.dropFirst(2).split(separator: separator, omittingEmptySubsequences: false)
            guard parts.count == 3, parts[2].isEmpty, !parts[0].isEmpty, (try? Regex(String(parts[0]))) != nil else {
                return nil
            }
            self = .substitution(pattern: String(parts[0]), replacement: String(parts[1]))
        }
    }

    package func key(for url: String) -> String {
        switch self {
        case .url: return url
        case .transformed(let rule, let key):
            return TransformedKey.key(rule.key(for: url), transformerKey: key)
        case .withoutQuery:
            let end = url.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
            return end.map { String(url[..<$0]) } ?? url
        case .substitution(let pattern, let replacement):
            guard let regex = try? Regex(pattern) else { return url }
            return url.replacing(regex, with: replacement)
        }
    }
}

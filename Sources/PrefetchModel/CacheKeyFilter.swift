/// Maps a URL to its cache key (SDWebImageManager's `cacheKeyFilter`), in a form that every worker follows.
public struct CacheKeyFilter: Sendable, Equatable, CustomStringConvertible {
    /// The kinds of filters.
    package enum Kind: Sendable, Equatable {
        case url, withoutQuery
        case substitution(pattern: String, replacement: String)
    }

    package let kind: Kind

    /// The whole URL, byte for byte: SDWebImage's absoluteString.
    public static let url = CacheKeyFilter(kind: .url)
    /// The URL up to its query or fragment.
    public static let withoutQuery = CacheKeyFilter(kind: .withoutQuery)

    private init(kind: Kind) { self.kind = kind }

    /// Replaces every match of a regular expression.
    /// - Throws: `invalidConfiguration` if the expression is empty or invalid.
    public init(replacing pattern: String, with replacement: String) throws(WebImageError) {
        guard !pattern.isEmpty, (try? Regex(pattern)) != nil else {
            throw WebImageError(.invalidConfiguration, "'\(pattern)' is not a regular expression")
        }
        kind = .substitution(pattern: pattern, replacement: replacement)
    }

    /// Parses `url`, `without-query` or `s/pattern/replacement/` (any character may replace the slash); nil for anything else, including an
    /// invalid regular expression.
    public init?(_ text: String) {
        switch text {
        case "url": self = .url
        case "without-query": self = .withoutQuery
        default:
            guard text.first == "s", let separator = text.dropFirst().first else { return nil }
            let parts = text.dropFirst(2).split(separator: separator, omittingEmptySubsequences: false)
            guard parts.count == 3, parts[2].isEmpty,
                let filter = try? CacheKeyFilter(replacing: String(parts[0]), with: String(parts[1]))
            else { return nil }
            self = filter
        }
    }

    /// The text of ``init(_:)``.
    public var description: String {
        switch kind {
        case .url: return "url"
        case .withoutQuery: return "without-query"
        case .substitution(let pattern, let replacement):
            let separators = ["/", "|", "#", "~", "!", "\u{1}"]
            let separator = separators.first { !pattern.contains($0) && !replacement.contains($0) } ?? "\u{2}"
            return ["s", pattern, replacement, ""].joined(separator: separator)
        }
    }

    /// The key of a URL.
    public func key(for url: String) -> String {
        switch kind {
        case .url: return url
        case .withoutQuery:
            let end = url.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
            return end.map { String(url[..<$0]) } ?? url
        case .substitution(let pattern, let replacement):
            guard let regex = try? Regex(pattern).matchingSemantics(.unicodeScalar) else { return url }
            return url.replacing(regex, with: replacement)
        }
    }
}

/// Maps a URL to its cache key (SDWebImageManager's `cacheKeyFilter`), in a form that every worker follows.
public struct CacheKeyFilter: Sendable, Equatable, CustomStringConvertible {
    /// The kinds of filters.
    private enum Kind: Sendable, Equatable {
        case url, withoutQuery
        case substitution(BytePattern, PatternReplacement)
    }

    /// The longest key, in bytes: that of the longest URL.
    private static let longest = 65_536

    private let kind: Kind

    /// The whole URL, byte for byte: SDWebImage's absoluteString.
    public static let url = CacheKeyFilter(kind: .url)
    /// The URL up to its query or fragment.
    public static let withoutQuery = CacheKeyFilter(kind: .withoutQuery)

    private init(kind: Kind) { self.kind = kind }

    /// Replaces every match of a regular expression, in Perl's syntax (PCRE2) and over bytes.
    ///
    /// In the replacement `$1` or `\1` is a group, `${name}` a named one and `$0` the match; `$$` is a dollar, and a backslash takes the next
    /// character as itself.
    /// - Throws: `invalidConfiguration` with the place of what is wrong.
    public init(replacing pattern: String, with replacement: String) throws(WebImageError) {
        guard !pattern.isEmpty else {
            throw WebImageError(.invalidConfiguration, "an empty text is not a regular expression to replace")
        }
        let compiled = try BytePattern(pattern)
        kind = .substitution(compiled, try PatternReplacement(replacement, in: compiled))
    }

    /// Parses `url`, `without-query` or `s/pattern/replacement/`; nil for anything else, including an invalid regular expression.
    public init?(_ text: String) {
        guard let filter = try? CacheKeyFilter(text: text) else { return nil }
        self = filter
    }

    /// Parses the text of an option. Any character may stand for the slash; behind a backslash it does not end its part.
    /// - Throws: `invalidConfiguration`.
    package init(text: String) throws(WebImageError) {
        if text.hasBytes(of: "url") {
            self = .url
        } else if text.hasBytes(of: "without-query") {
            self = .withoutQuery
        } else {
            guard text.startsWithBytes(of: "s"), let separator = text.unicodeScalars.dropFirst().first,
                case let parts = Self.parts(text.unicodeScalars.dropFirst(2), separator), parts.count == 3,
                parts[2].isEmpty
            else {
                throw WebImageError(
                    .invalidConfiguration, "'\(text)' is not url, without-query or s/REGEX/REPLACEMENT/")
            }
            try self.init(replacing: parts[0], with: parts[1])
        }
    }

    /// What is between separators. A backslash before one stays: in a pattern and in a replacement it makes any such character itself.
    private static func parts(_ text: Substring.UnicodeScalarView, _ separator: Unicode.Scalar) -> [String] {
        var parts = [String.UnicodeScalarView()]
        var isEscaped = false
        for scalar in text {
            if scalar == separator, !isEscaped {
                parts.append(String.UnicodeScalarView())
            } else {
                parts[parts.count - 1].append(scalar)
            }
            isEscaped = scalar == "\\" && !isEscaped
        }
        return parts.map { String($0) }
    }

    /// The text of ``init(_:)``.
    public var description: String {
        switch kind {
        case .url: return "url"
        case .withoutQuery: return "without-query"
        case .substitution(let pattern, let replacement):
            let parts = [pattern.description, replacement.description]
            let separator = Self.separator(of: parts)
            return (["s"] + parts + [""]).joined(separator: "\(separator)")
        }
    }

    /// A character at which texts are not taken apart.
    private static func separator(of texts: [String]) -> Unicode.Scalar {
        let usual: [Unicode.Scalar] = ["/", "|", "#", "~", "!"]
        let others = (1...UInt32.max).lazy.compactMap(Unicode.Scalar.init).filter { $0 != "\\" }
        return usual.first { separator in texts.allSatisfy { parts($0.unicodeScalars[...], separator).count == 1 } }
            ?? others.first { separator in !texts.contains { $0.unicodeScalars.contains(separator) } } ?? "/"
    }

    /// The key of a URL.
    /// - Throws: `invalidURL` if the pattern takes more steps on this URL than it may, cuts a character in two, or makes a key that is too long.
    public func key(for url: String) throws(WebImageError) -> String {
        switch kind {
        case .url: return url
        case .withoutQuery:
            let end = url.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
            return end.map { String(url[..<$0]) } ?? url
        case .substitution(let pattern, let replacement):
            return try Self.replacing(pattern, replacement, in: url)
        }
    }

    private static func replacing(
        _ pattern: BytePattern, _ replacement: PatternReplacement, in url: String
    ) throws(WebImageError) -> String {
        var key: [UInt8] = []
        var end = 0
        try pattern.search(url) { bytes, match in
            key += bytes[end..<match.span.lowerBound]
            replacement.append(match, of: bytes, to: &key)
            end = match.span.upperBound
            return key.count <= longest
        }
        key += url.utf8.dropFirst(end)
        guard key.count <= longest else {
            throw WebImageError(.invalidURL, "the pattern \(pattern) makes a cache key of more than \(longest) bytes")
        }
        // U+FFFD in place of what is left of a character would give several URLs one key.
        guard let text = String(validating: key, as: UTF8.self) else {
            throw WebImageError(
                .invalidURL, "the pattern \(pattern) cuts a character in two, which no cache key can have")
        }
        return text
    }
}

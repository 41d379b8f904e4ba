/// Decides which URLs may be requested: asked before each request, on every redirect too, but not for images in the cache.
public protocol ImageURLFilter: Sendable {
    /// Judges a URL. Called on the downloader's thread, so it must be quick.
    /// - Parameter url: http or https, without credentials.
    /// - Returns: why it may not be requested; nil: it may. The URL then ends as `filtered`.
    /// - Throws: the error with which the URL ends, if the filter cannot judge it.
    func refusal(of url: String) throws(WebImageError) -> String?
}

/// Host names, in lower case, or `*.domain` for all names below a domain.
public struct HostPatterns: Sendable, Equatable, ExpressibleByArrayLiteral {
    /// The patterns.
    public var patterns: [String]

    /// Takes patterns.
    public init(_ patterns: [String]) { self.patterns = patterns.map(\.asciiLowercased) }

    /// Takes patterns.
    public init(arrayLiteral elements: String...) { self.init(elements) }

    /// Whether a pattern names a host.
    public func contains(_ host: String) -> Bool {
        let host = Substring(host.utf8.last == UInt8(ascii: ".") ? host.utf8.dropLast() : host.utf8[...])
        return patterns.contains { pattern in
            guard pattern.startsWithBytes(of: "*.") else { return host.hasBytes(of: pattern) }
            return host.endsWithBytes(of: pattern.dropFirst()) && host.utf8.count >= pattern.utf8.count
        }
    }
}

/// Allows some hosts, or all but some.
public struct HostFilter: ImageURLFilter, Equatable, CustomStringConvertible {
    /// The only hosts that may be asked; none (default): any.
    public var allowed: HostPatterns
    /// Hosts that may not be asked, even if they are allowed; default: none.
    public var denied: HostPatterns

    /// Allows and denies hosts.
    public init(allowed: HostPatterns = [], denied: HostPatterns = []) {
        (self.allowed, self.denied) = (allowed, denied)
    }

    /// The filters of options.
    package static func filters(
        _ allowed: [String]?, _ denied: [String]?, _ patterns: [String]?
    ) -> [any ImageURLFilter] {
        let hosts = HostFilter(allowed: HostPatterns(allowed ?? []), denied: HostPatterns(denied ?? []))
        let others = (patterns ?? []).map { pattern -> any ImageURLFilter in
            do throws(WebImageError) { return try PatternFilter(pattern) } catch {
                return NothingFilter(message: error.message)
            }
        }
        return hosts == HostFilter() ? others : [hosts] + others
    }

    /// The options that make it: `--allow-host a,b --deny-host c`.
    public var description: String {
        [("--allow-host", allowed), ("--deny-host", denied)].filter { !$1.patterns.isEmpty }
            .map { "\($0) \($1.patterns.joined(separator: ","))" }.joined(separator: " ")
    }

    /// Judges the host of a URL.
    public func refusal(of url: String) -> String? {
        guard let host = try? RequestURL(url).host else { return nil }
        if denied.contains(host) { return "the host \(host) is denied" }
        if !allowed.patterns.isEmpty, !allowed.contains(host) {
            return "the host \(host) is not among the allowed ones"
        }
        return nil
    }
}

/// Allows URLs in which a regular expression, in Perl's syntax (PCRE2) and over bytes, has a match.
public struct PatternFilter: ImageURLFilter, Equatable, CustomStringConvertible {
    private let compiled: BytePattern

    /// The regular expression.
    public var pattern: String { compiled.description }

    /// Takes a regular expression.
    /// - Throws: `invalidConfiguration` if it is none.
    public init(_ pattern: String) throws(WebImageError) { compiled = try BytePattern(pattern) }

    /// The option that makes it: `--url-filter jpg$`.
    public var description: String { "--url-filter \(pattern)" }

    /// Judges a URL.
    /// - Throws: `invalidURL` if the expression takes more steps on it than it may.
    public func refusal(of url: String) throws(WebImageError) -> String? {
        try compiled.matches(url) ? nil : "the URL does not match \(pattern)"
    }
}

/// Allows nothing: what a pattern that another version took, and this one does not, would allow is not known.
private struct NothingFilter: ImageURLFilter {
    let message: String

    func refusal(of url: String) -> String? { message }
}

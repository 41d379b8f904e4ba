/// How a URL ended. Each URL has exactly one, stored as one byte in a batch's outcome string; the values never change. 22 to 31 are
/// reserved for later versions and read as ``unknown``.
///
/// The first three ended with an image. All others count as *skipped* in SDWebImage's sense: finished without an image.
public enum PrefetchOutcome: UInt8, Sendable, CaseIterable {
    /// Fetched from the network, verified and stored.
    case downloaded = 1
    /// In the cache, verified at least to the requested level.
    case hit
    /// The server returned 304; the cached image stays valid.
    case notModified
    /// On the blacklist; no request was made.
    case blacklisted
    /// An unsuccessful status code, or too many redirects.
    case httpError
    /// The connect, idle, low-speed or total limit was exceeded on every try; or its host is so slow that shards waited for it.
    case timeout
    /// The host name did not resolve.
    case dns
    /// The connection failed.
    case connect
    /// The TLS handshake or the certificate failed.
    case tls
    /// A complete body that is not a valid image.
    case badImage
    /// Exceeds the size limit.
    case tooLarge
    /// Refused by a policy: a private address, robots.txt, a scheme.
    case refused
    /// The line is not a URL.
    case invalidURL
    /// Reset, or a body shorter than announced, on every try.
    case truncated
    /// Its bytes crashed two processes that were to decode it, or three workers.
    case poison
    /// The batch was cancelled first.
    case cancelled
    /// `fromCacheOnly`, or the delegate declined the download.
    case notCached
    /// The digest differs from the expected one.
    case mismatch
    /// A complete body in a known format that cannot be verified, such as HEIC or an arithmetic-coded JPEG.
    case unsupported
    /// No working worker could store or read its file, although their disks took others.
    case notStored
    /// Not wanted: the filters of its batch or line, or of the run, by size, proportions, type, host or URL, do not take it. No failure.
    case filtered
    /// An outcome of a later version; never written here.
    case unknown = 31

    /// Whether it counts as skipped: finished without an image.
    public var isSkipped: Bool { rawValue > Self.notModified.rawValue }

    /// The name used on screens, in JSON, metrics and exports.
    public var name: String { Self.names[Int(rawValue)] }

    /// Cached: a list has millions of outcomes, and reflecting a case's name takes a microsecond.
    private static let names = (0...Self.unknown.rawValue).map { Self(rawValue: $0).map { "\($0)" } ?? "" }

    /// Decodes a byte of an outcome string: ``unknown`` for later versions; nil for 0 (open) and for invalid bytes.
    public init?(code: UInt8) {
        guard (1...Self.unknown.rawValue).contains(code) else { return nil }
        self = Self(rawValue: code) ?? .unknown
    }

    /// Looks up an outcome by name.
    public init?(name: String) {
        guard let outcome = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = outcome
    }
}

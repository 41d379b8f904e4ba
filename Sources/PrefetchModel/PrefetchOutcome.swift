/// How one URL ended: exactly one per URL, one byte each in a batch's outcome string, in this order for ever. 20 to 31 are for later versions,
/// and read as ``unknown``.
///
/// The first three ended with an image. All others count as *skipped* in SDWebImage's sense: finished without an image.
public enum PrefetchOutcome: UInt8, Sendable, CaseIterable {
    /// Fetched from the network, verified, stored.
    case downloaded = 1
    /// The cache had it, verified at least as far as asked.
    case hit
    /// The server said 304; the cached image stands.
    case notModified
    /// On the list of failed URLs; no request was made.
    case blacklisted
    /// A status code that is no success; too many redirects.
    case httpError
    /// Connect, idle, low-speed or total limit passed on every try.
    case timeout
    /// The host name does not resolve.
    case dns
    /// No connection.
    case connect
    /// Handshake or certificate.
    case tls
    /// A complete body that is no whole image.
    case badImage
    /// Over the size limit.
    case tooLarge
    /// By our own policy: a private address, a scheme.
    case refused
    /// The line is no URL.
    case invalidURL
    /// Reset, or a body shorter than announced, on every try.
    case truncated
    /// Its bytes ended three workers.
    case poison
    /// The batch was cancelled first.
    case cancelled
    /// `fromCacheOnly`, or the delegate said no.
    case notCached
    /// The digest differs from the expected one.
    case mismatch
    /// A whole body in a known format that cannot be verified, such as AVIF or an arithmetic-coded JPEG.
    case unsupported
    /// An outcome of a later version; nothing here writes it.
    case unknown = 31

    /// Whether it counts as skipped: finished without an image.
    public var isSkipped: Bool { rawValue > Self.notModified.rawValue }

    /// The one name it has on screens, in JSON, in metrics and in exports.
    public var name: String { self == .unknown ? "unknown" : Self.names[Int(rawValue) - 1] }

    /// Made once: a list has millions of outcomes, and finding out a case's name takes a microsecond.
    private static let names = allCases.map { "\($0)" }

    /// By the byte of an outcome string: ``unknown`` for those of later versions; nil for 0, which is open, and for what is no outcome.
    public init?(code: UInt8) {
        guard (1...Self.unknown.rawValue).contains(code) else { return nil }
        self = Self(rawValue: code) ?? .unknown
    }

    /// By its name.
    public init?(name: String) {
        guard let outcome = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = outcome
    }
}

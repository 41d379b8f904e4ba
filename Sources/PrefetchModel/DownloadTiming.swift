/// Timing of a download in seconds since the last hop's request began; libcurl's figures.
public struct DownloadTiming: Sendable, Equatable {
    /// Name resolved.
    public var nameLookup = 0.0
    /// Connection established; 0 if it was reused.
    public var connect = 0.0
    /// TLS handshake done; 0 without TLS.
    public var tls = 0.0
    /// First byte received.
    public var firstByte = 0.0
    /// Last byte received.
    public var total = 0.0
    /// Whether the connection was reused.
    public var reusedConnection = false

    /// All times zero.
    public init() {}
}

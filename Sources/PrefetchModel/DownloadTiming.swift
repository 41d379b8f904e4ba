/// Where the time went, in seconds since the last hop's request began; libcurl's figures.
public struct DownloadTiming: Sendable, Equatable {
    /// The name was resolved.
    public var nameLookup = 0.0
    /// The connection was made; 0 on a reused one.
    public var connect = 0.0
    /// TLS was agreed on; 0 without it.
    public var tls = 0.0
    /// The first byte came.
    public var firstByte = 0.0
    /// The last byte came.
    public var total = 0.0
    /// Whether the connection was there already.
    public var reusedConnection = false

    /// No time at all.
    public init() {}
}

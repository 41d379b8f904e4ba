/// A response with its complete body, not yet verified.
public struct DownloadedImage: Sendable {
    /// Where the time of the last hop went.
    public typealias Timing = DownloadTiming

    /// The bytes.
    public var body: ImageBody
    /// 200 to 299, or another that is accepted; 206 where an earlier try was gone on with.
    public var statusCode: Int
    /// `ETag`.
    public var eTag: String?
    /// `Last-Modified`, as the server wrote it.
    public var lastModified: String?
    /// `Content-Type`; a hint only, the bytes tell the format.
    public var contentType: String?
    /// `Content-Encoding`, which was not asked for; the body is without it.
    public var contentEncoding: String?
    /// `X-Robots-Tag`.
    public var robotsTag: String?
    /// Where the last redirect led, without credentials.
    public var effectiveURL: String
    /// How many redirects were followed.
    public var redirectCount: Int
    /// How often the URL was requested, redirects not counted.
    public var attempts: Int
    /// The address the bytes came from.
    public var remoteAddress: String
    /// The phases of the last hop.
    public var timing: Timing
    /// `1.0`, `1.1`, `2` or `3`.
    public var httpVersion: String
    /// Whether the end of the body was told by a length, a last chunk or the end of an HTTP/2 stream. Without it the end of the
    /// connection ended the body, and only the image's own structure tells whether it is whole.
    public var lengthWasAnnounced: Bool
    /// Seconds for which the server does not want to be asked again (RFC 9111, RFC 8246); nil where it says nothing.
    public var freshFor: Int?
    /// Bytes that an earlier try had brought, and this one did not.
    public var resumedFrom = 0
}

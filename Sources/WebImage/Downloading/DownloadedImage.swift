/// A response with its complete body, not yet verified.
public struct DownloadedImage: Sendable {
    /// Timing of the last hop.
    public typealias Timing = DownloadTiming

    /// The body.
    public var body: ImageBody
    /// 200 to 299 or another accepted code; 206 if a partial body was resumed.
    public var statusCode: Int
    /// `ETag`.
    public var eTag: String?
    /// `Last-Modified` as sent by the server.
    public var lastModified: String?
    /// `Content-Type`; only a hint, the bytes determine the format.
    public var contentType: String?
    /// The final URL after redirects, without credentials.
    public var effectiveURL: String
    /// Number of redirects followed.
    public var redirectCount: Int
    /// How often the URL was requested, not counting redirects.
    public var tries: Int
    /// Address of the peer.
    public var remoteAddress: String
    /// Timing of the last hop.
    public var timing: Timing
    /// `1.0`, `1.1`, `2` or `3`.
    public var httpVersion: String
    /// Whether a length, a last chunk or the end of an HTTP/2 stream marked the end of the body. Otherwise the connection's end did, and
    /// only the image's structure shows whether it is complete.
    public var lengthWasAnnounced: Bool
    /// Freshness lifetime in seconds (RFC 9111, RFC 8246); nil if unspecified.
    public var freshFor: Int?
    /// Bytes taken over from an earlier try.
    public var resumedFrom = 0
}

extension DownloadedImage {
    /// - Throws: `badImageData` if the decryptor makes nothing of its bytes.
    func opened(
        by decryptor: (@Sendable (ImageBody, String) -> [UInt8]?)?, of url: String
    ) throws(WebImageError) -> DownloadedImage {
        guard let decryptor else { return self }
        guard let bytes = decryptor(body, url) else {
            throw WebImageError(.badImageData, "the decryptor made nothing of the bytes")
        }
        var opened = self
        opened.body = ImageBody(bytes)
        return opened
    }
}

/// One image to load, with what is particular about its request.
///
/// ```swift
/// var request = ImageRequest("https://example.org/a.jpg")
/// request.headers = [HTTPHeader("Referer", "https://example.org/")]
/// let image = try await manager.loadImage(request)
/// ```
public struct ImageRequest: Sendable, ExpressibleByStringLiteral {
    /// The URL, http or https.
    public var url: String
    /// Options of the load; default none.
    public var options: WebImageOptions = []
    /// Headers of its request, before those of the downloader's configuration; default none. After a redirect to another site only harmless
    /// ones are sent.
    public var headers: [HTTPHeader] = []
    /// The SHA-256 its bytes have to have; other ones end as `digestMismatch`, and a cached image that differs is fetched again. Default nil.
    public var digest: Digest?
    /// URLs that are tried, in order, if ``url`` has no image; default none. Key, identity and reported failure remain those of ``url``.
    public var mirrors: [String] = []
    /// How the image is changed before it is stored, under a key of its own; default nil. Takes the place of the manager's transformer.
    public var variant: ImageVariant?
    /// The key in the cache; nil (default): by the cache's `cacheKeyFilter`.
    public var key: String?
    /// Which images are taken, by their first bytes; default all.
    public var rules = ImageRules()
    /// The jar of `handleCookies`; nil (default): the downloader's own.
    public var cookies: CookieJar?

    /// A request for a URL.
    public init(_ url: String, options: WebImageOptions = []) {
        (self.url, self.options) = (url, options)
    }

    /// A request for a URL.
    public init(stringLiteral url: String) { self.url = url }
}

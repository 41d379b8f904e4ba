/// A verified image, and how it was obtained.
public struct LoadedImage: Sendable {
    /// The requested URL, byte for byte.
    public var url: String
    /// Its key in the cache.
    public var key: String
    /// The file in the cache; nil if the image is only in memory.
    public var path: String?
    /// Result of its check.
    public var info: ImageInfo
    /// Length in bytes.
    public var byteCount: Int
    /// SHA-256 of the bytes, 32 of them; nil if it was not computed.
    public var sha256: [UInt8]?
    /// Where it came from.
    public var cacheType: ImageCacheType
    /// `downloaded`, `hit` or `notModified`.
    public var outcome: PrefetchOutcome
    /// The status code of the response; nil without a request.
    public var httpStatus: Int?
    /// How often the URL was requested, not counting redirects; 0 for a hit.
    public var attempts: Int
    /// Timing of the last request; nil without one.
    public var timing: DownloadedImage.Timing?
    /// Additional information for humans, such as warnings of its check.
    public var details: [String]

    /// Creates a loaded image.
    public init(
        url: String, key: String, path: String? = nil, info: ImageInfo, byteCount: Int, sha256: [UInt8]? = nil,
        cacheType: ImageCacheType = .none, outcome: PrefetchOutcome = .downloaded, httpStatus: Int? = nil,
        attempts: Int = 1, details: [String] = []
    ) {
        self.url = url
        self.key = key
        self.path = path
        self.info = info
        self.byteCount = byteCount
        self.sha256 = sha256
        self.cacheType = cacheType
        self.outcome = outcome
        self.httpStatus = httpStatus
        self.attempts = attempts
        self.details = details
    }
}

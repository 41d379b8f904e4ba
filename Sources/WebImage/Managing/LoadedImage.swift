/// A verified image, and how it was come by.
public struct LoadedImage: Sendable {
    /// The URL it was asked for with, byte for byte.
    public var url: String
    /// Its key in the cache.
    public var key: String
    /// The file in the cache; nil where the image is in memory alone.
    public var path: String?
    /// What its check found out.
    public var info: ImageInfo
    /// Length in bytes.
    public var byteCount: Int
    /// SHA-256 of the bytes, 32 of them; nil where none was computed.
    public var sha256: [UInt8]?
    /// Where it came from.
    public var cacheType: ImageCacheType
    /// `downloaded`, `hit` or `notModified`.
    public var outcome: PrefetchOutcome
    /// The status code of the response; nil where no request was made.
    public var httpStatus: Int?
    /// How often the URL was requested, redirects not counted; 0 for a hit.
    public var attempts: Int
    /// Where the time of the last request went; nil where none was made.
    public var timing: DownloadedImage.Timing?
    /// What a person may want to know beside the outcome, such as the warnings of its check.
    public var details: [String]

    /// A loaded image with everything that is known about it.
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

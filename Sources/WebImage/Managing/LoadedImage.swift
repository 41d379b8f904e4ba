internal import Glibc

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
    /// Where it came from; `none` for what was downloaded, also by another load for which this one waited.
    public var cacheType: ImageCacheType
    /// `downloaded`, `hit` or `notModified`. A download counts once: who waited for that of another load has a `hit`.
    public var outcome: PrefetchOutcome
    /// The status code of the response; nil without a request.
    public var httpStatus: Int?
    /// How often the URL was requested, not counting redirects; 0 for a hit.
    public var tries: Int
    /// Timing of the last request; nil without one.
    public var timing: DownloadedImage.Timing?
    /// How ``bitmap(options:)`` decodes without options: with the scale of the key, and reduced with the option `scaleDownLargeImages`.
    public var decodeOptions = ImageDecodeOptions()
    /// Its bytes if it has no file; nil otherwise.
    var bytes: [UInt8]?
    /// Additional information for humans, such as warnings of its check.
    public var details: [String]

    /// Creates a loaded image.
    public init(
        url: String, key: String, path: String? = nil, info: ImageInfo, byteCount: Int, sha256: [UInt8]? = nil,
        cacheType: ImageCacheType = .none, outcome: PrefetchOutcome = .downloaded, httpStatus: Int? = nil,
        tries: Int = 1, details: [String] = []
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
        self.tries = tries
        self.details = details
    }

    /// The bytes of the image, from memory or from its file. Blocks.
    /// - Throws: `localFault` if the file is not there any more, or cannot be read.
    public func data() throws(WebImageError) -> [UInt8] {
        if let bytes { return bytes }
        guard let path else { throw WebImageError(.localFault, "the image is neither in memory nor in a file") }
        guard let file = OpenFile(Glibc.open(path, O_RDONLY | O_CLOEXEC)),
            let bytes = OpenFile.read(file.descriptor, at: 0, limit: byteCount), bytes.count == byteCount
        else { throw WebImageError(.localFault, "\(path): \(String(cString: strerror(errno)))") }
        return bytes
    }

    /// The pixels of the image, of an animation those of the first frame. Blocks.
    /// - Parameters:
    ///   - options: nil (default): ``decodeOptions``.
    ///   - coder: decodes it, by default within the limits of ``ImageCoder``.
    /// - Returns: an upright bitmap, unless the options say otherwise.
    /// - Throws: as ``data()`` and ``ImageCoder/decode(_:options:)``.
    public func bitmap(
        options: ImageDecodeOptions? = nil, coder: ImageCoder = ImageCoder()
    ) throws(WebImageError) -> Bitmap {
        let data = try data()
        return try data.span.withUnsafeBytes { bytes throws(WebImageError) in
            try coder.decode(bytes, options: options ?? decodeOptions)
        }
    }
}

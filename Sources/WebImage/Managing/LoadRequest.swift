/// One URL to load, with all its settings; created by `loadImage(with:options:)` and by a worker's job.
package struct LoadRequest: Sendable {
    package var url: String
    package var key: String
    package var level = ValidationLevel.decode
    /// Which images are taken; nil: all.
    package var rules: HeaderRules?
    package var unverifiable = UnverifiableFormats.skip
    /// Whether file and folder are synced before this returns.
    package var isDurable = false
    package var options: WebImageOptions = []
    package var headers: [HTTPHeader] = []
    package var expectedDigest: Digest?
    /// Alternative URLs, in order.
    package var mirrors: [String] = []
    /// Whether it is being fetched from a mirror, whose validators do not apply to the URL.
    var isFromMirror = false
    var transformation: ImageTransformation?
    /// What is stored instead of the image, under ``key``, which is the variant's.
    private(set) var variant: VariantRecipe?
    /// The key of the image itself.
    private(set) var originalKey: String
    var progress: (@Sendable (Int, Int) -> Void)?
    /// Whether to use the memory cache. Not if the image counts only because its file exists.
    package var usesMemory = false
    package var needsPath = true
    /// The cookie jar; nil: the downloader's own, shared by all loads without one.
    package var cookies: CookieJar?
    /// The profile of its requests; nil: the downloader's configuration.
    package var profile: RequestProfile?
    /// In words how it is requested, beside what is here: requests of two profiles with the same settings end in the same way. Nil: nothing is
    /// known of its profile.
    package var settings: String?
    /// Other processes that may ask for the same; nil: none.
    package var sharing: (any FailureSharing)?
    package var permit: DownloadPermit?
    /// Called on a cache miss; an error ends the load.
    package var willUseNetwork: (@Sendable () throws(WebImageError) -> Void)?
    /// Called with the cached image before it is refreshed.
    var willRefresh: (@Sendable (LoadedImage) -> Void)?
    /// Called when all bytes have arrived, before they are checked and stored.
    package var willStore: (@Sendable () async -> Void)?
    /// Makes the check of the downloaded bytes exclusive in its manager: called with true when it starts, and with false after it.
    package var decodesExclusively: (@Sendable (_ isAlone: Bool) async -> Void)?
    /// Notes that its bytes are about to be decoded, and that they have been.
    package var decodeNote: DecodeNote?
    /// Called after a failed download or check, before any other load tries the same image.
    package var didFail: (@Sendable (WebImageError) -> Void)?

    package init(url: String, key: String) {
        self.url = url
        self.key = key
        originalKey = key
    }

    /// Asks for a variant of the image.
    package mutating func apply(_ recipe: VariantRecipe) {
        variant = recipe
        key = TransformedKey.key(originalKey, transformerKey: recipe.key)
    }

    package var isFromCacheOnly: Bool {
        get { options.contains(.fromCacheOnly) }
        set { if newValue { options.insert(.fromCacheOnly) } else { options.remove(.fromCacheOnly) } }
    }

    var revalidatesHits: Bool { options.revalidatesHits || (expectedDigest != nil && variant == nil) }

    /// Whether it follows the download of another load of its manager, and leads others.
    var sharesDownload: Bool { usesMemory && !revalidatesHits }

    /// Judges an image by a complete check or by its record.
    /// * `original`: what it was made of; nil if it was fetched as it is.
    /// - Throws: `imageRefused` if it, or its original, breaks a rule.
    func judge(_ info: ImageInfo, madeOf original: OriginalImage? = nil) throws(WebImageError) {
        guard let rules else { return }
        guard let original else { return try rules.judge(ImageHeader(info)) }
        let size = PixelSize(width: original.width, height: original.height)
        try rules.judge(ImageHeader(format: original.format, size: size))
    }

    /// What a later request for the image says of a response.
    /// What a later request for the image can be conditional on; nil: nothing.
    func validators(of download: DownloadedImage) -> HTTPValidators? {
        guard !isFromMirror else { return nil }
        let validators = HTTPValidators(
            etag: download.eTag, lastModified: download.lastModified,
            freshUntil: download.freshFor.map { WallClock.seconds + $0 })
        return validators == HTTPValidators() ? nil : validators
    }
}

extension ImageHeader {
    init(_ info: ImageInfo) {
        self.init(format: info.format, size: PixelSize(width: info.displayWidth, height: info.displayHeight))
    }

    /// Of an image of which only the first bytes were checked.
    init(arriving info: ImageInfo) {
        self.init(info)
        mayTurn = info.orientation == .up && [.png, .webp].contains(info.format)
    }
}

extension RequestURL {
    static func areOfOneSite(_ url: String, _ mirror: String) -> Bool {
        guard let one = try? RequestURL(url), let other = try? RequestURL(mirror) else { return false }
        return one.origin.hasBytes(of: other.origin)
    }
}

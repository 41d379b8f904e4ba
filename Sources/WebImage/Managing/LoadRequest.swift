/// One URL to load, with everything that is decided for it. What `loadImage(with:options:)` and a worker's job come to.
package struct LoadRequest: Sendable {
    /// The URL, byte for byte as it was given.
    package var url: String
    /// Its key in the cache.
    package var key: String
    /// How far it has to be verified.
    package var level = ValidationLevel.decode
    /// What becomes of a format that cannot be verified so far.
    package var unverifiable = UnverifiableFormats.skip
    /// Whether the record has the digest of the bytes.
    package var computesDigest = true
    /// Whether the file and its folder are synced before this returns.
    package var isDurable = false
    /// How it differs from the usual.
    package var options: WebImageOptions = []
    /// Sent beside the configured ones.
    package var headers: [HTTPHeader] = []
    /// The digest its bytes have to have.
    package var expectedDigest: Digest?
    /// Where else the image is, in the order in which that is tried.
    package var mirrors: [String] = []
    /// Whether it is being fetched from one of them: what its server says of the bytes is not what the URL's server says.
    var isFromMirror = false
    /// What is made of its bytes before they are stored.
    var rework: ImageRework?
    /// Hears of its bytes.
    var progress: (@Sendable (Int, Int) -> Void)?
    /// Whether the memory cache may answer, and gets the image. Not for whoever counts an image only because its file is there.
    package var usesMemory = false
    /// Whether who asks wants to know where its file is.
    package var wantsPath = true
    /// Where its cookies are kept; nil: with all of the downloader's that have no jar.
    package var cookies: CookieJar?
    /// How its requests are made; nil: as the downloader's configuration says.
    package var profile: RequestProfile?
    /// Leave to ask the network, which can be taken back.
    package var permit: DownloadPermit?
    /// Runs where the cache has no such image; what it throws ends the load.
    package var willLeaveCache: (@Sendable () throws(WebImageError) -> Void)?
    /// Runs when all bytes are there, before they are checked and stored.
    package var willStore: (@Sendable () async -> Void)?
    /// Makes the check of the downloaded bytes the only one of its manager: called with true when it is, and with false when it has ended.
    package var decodesAlone: (@Sendable (_ isAlone: Bool) async -> Void)?
    /// Runs where the download or its check failed, before anybody else tries the same image.
    package var didFail: (@Sendable (WebImageError) -> Void)?

    package init(url: String, key: String) {
        self.url = url
        self.key = key
    }

    /// No network.
    package var isFromCacheOnly: Bool {
        get { options.contains(.fromCacheOnly) }
        set { if newValue { options.insert(.fromCacheOnly) } else { options.remove(.fromCacheOnly) } }
    }

    /// Whether a hit is more than a look at the cache.
    var questionsHits: Bool { options.questionsHits || expectedDigest != nil }

    /// Whether its bytes do not simply go into the cache.
    var storesSpecially: Bool { expectedDigest != nil || rework != nil || options.contains(.cacheMemoryOnly) }
}

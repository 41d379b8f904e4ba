/// One URL to load, with everything that is decided for it. What `loadImage(with:options:)` and a worker's job come to.
package struct LoadRequest: Sendable {
    /// The URL, byte for byte as it was given.
    package var url: String
    /// Its key in the cache.
    package var key: String
    /// How far it has to be verified.
    package var level = ValidationLevel.decode
    /// Whether the record has the digest of the bytes.
    package var computesDigest = true
    /// Whether the file and its folder are synced before this returns.
    package var isDurable = false
    /// No network.
    package var isFromCacheOnly = false
    /// Whether the memory cache may answer, and gets the image. Not for whoever counts an image only because its file is there.
    package var usesMemory = false
    /// Leave to ask the network, which can be taken back.
    package var permit: DownloadPermit?
    /// Runs where the cache has no such image; what it throws ends the load.
    package var willLeaveCache: (@Sendable () throws(WebImageError) -> Void)?
    /// Runs just before the bytes go to the decoder.
    package var willDecode: (@Sendable () async -> Void)?
    /// Runs where the download or its check failed, before anybody else tries the same image.
    package var didFail: (@Sendable (WebImageError) -> Void)?

    package init(url: String, key: String) {
        self.url = url
        self.key = key
    }
}

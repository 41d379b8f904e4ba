/// How a list ended.
public struct PrefetchSummary: Sendable {
    /// A URL without an image.
    public struct Failure: Sendable {
        /// The URL.
        public let url: String
        /// Why it has none.
        public let error: WebImageError
    }

    /// URLs with an image, in the order in which they ended.
    public internal(set) var loaded: [String] = []
    /// URLs that were requested and have no image, in the order in which they ended.
    public internal(set) var failed: [Failure] = []
    /// URLs that were not requested: on the blacklist, refused, or cancelled.
    public internal(set) var skipped: [Failure] = []
    /// Whether the list was cancelled; then the rest of its URLs is in none of the lists.
    public internal(set) var isCancelled = false

    /// URLs that ended (SDWebImage's finishedCount).
    public var finishedCount: Int { loaded.count + failed.count + skipped.count }

    /// URLs that ended without an image (SDWebImage's skippedCount).
    public var skippedCount: Int { failed.count + skipped.count }

    /// URLs without an image, for another try.
    public var retryURLs: [String] { (failed + skipped).map(\.url) }

    mutating func add(_ url: String, _ result: Result<LoadedImage, WebImageError>) {
        switch result {
        case .success: loaded.append(url)
        case .failure(let error):
            let failure = Failure(url: url, error: error)
            if error.tries > 0 { failed.append(failure) } else { skipped.append(failure) }
        }
    }
}

internal import Threading

/// The failed URLs of one process (SDWebImageManager's `failedURLs`): they are not requested again without `retryFailed`.
public final class FailedURLs: Sendable {
    private let urls = Locked(Set<ByteText>())

    init() {}

    /// Number of failed URLs.
    public var count: Int { urls.withLock { $0.count } }

    /// Whether the URL failed.
    public func contains(_ url: String) -> Bool { urls.withLock { $0.contains(url) } }

    /// Adds a URL.
    public func insert(_ url: String) { urls.withLock { _ = $0.insert(url) } }

    /// Removes a URL (removeFailedURL:).
    public func remove(_ url: String) { urls.withLock { _ = $0.remove(url) } }

    /// Removes all URLs (removeAllFailedURLs).
    public func removeAll() { urls.withLock { $0.removeAll() } }
}
